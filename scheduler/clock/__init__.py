"""When jobs are due: timetable, recurrence, cron, misfires and outcomes.

Each due time is taken once, also when the process is killed in between.
"""
