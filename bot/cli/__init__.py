"""The command line, one file a command group.

Called by `bot.__main__`. It asks `bot.app` or the running bot; it must never do the bot's work
itself. Heavy imports happen inside the commands, so that `--help` is quick.
"""
