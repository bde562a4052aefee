"""What is done by the clock: one kind of work a module, each built and entered by `bot.app`.

A kind acts through what it is given; it must never keep the truth about its work in memory.
"""
