"""How the parts are put together; what is here goes into one lazy App.

No rule stands here: parts are built and handed to each other.
"""
