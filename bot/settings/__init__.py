"""Settings and the home folder: read, checked, edited, and the log that they set up.

All problems are told in one go; a secret is never printed.
"""
