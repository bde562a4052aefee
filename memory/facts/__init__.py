"""What the assistant knows about people: kept, superseded, recalled, exported.

A fact of one person is never found for another, and one that was forgotten never comes back.
"""
