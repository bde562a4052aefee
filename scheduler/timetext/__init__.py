"""Times in plain words, parsed into dates, clocks and recurrences.

What can be read in two ways is asked about, never guessed.
"""
