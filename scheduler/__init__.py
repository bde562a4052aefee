"""What happens by the clock.

Will be called by `bot.app` to start the timetable. It must never hold the truth about jobs:
that is in the database.
"""
