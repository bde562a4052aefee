"""Times in plain words, read without a model.

Called through `scheduler.words.reading` and `scheduler.words.finding`. It must never guess where it
can ask, and never look at a clock: what time it is, and where, is passed in.
"""
