"""What happens by the clock: times in plain words, jobs, due times, and how results are told.

It never holds the truth about jobs, which is in the database, and imports nothing of `bot`.
"""
