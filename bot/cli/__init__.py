"""The command line, a module for each group of commands.

It asks `bot.app` or the running bot and never does the bot's work itself. Heavy imports wait inside
the commands, so that `--help` is quick.
"""
