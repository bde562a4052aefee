"""Messages on their way out: stored, delivered in order, tried again, edited.

A failure that may have delivered is marked as such when it is sent again.
"""
