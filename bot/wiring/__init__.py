"""How the parts are put together, one file for each group of them.

No rule stands here: parts are built and handed to each other.
"""
