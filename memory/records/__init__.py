"""Values that every package speaks in: messages, transcripts, jobs, facts, errors.

They hold no behaviour that needs anything else of ours, and import nothing but each other.
"""
