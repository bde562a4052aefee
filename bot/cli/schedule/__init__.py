"""`hearthbot schedule`: jobs, when they run, and what a run would be.

What a job may be is the job service's to say: here it is asked and shown.
"""
