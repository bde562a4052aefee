"""Programs that are run for the assistant: confined where that works, bounded everywhere.

It never decides what may run or what it may see; the tools `exec` and `run_skill` say both.
"""
