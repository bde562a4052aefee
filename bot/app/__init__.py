"""The App: every part of the bot, built when it is first asked for, and the same for a command as
for the running bot.

No rule stands here: parts are built and handed to each other.
"""
