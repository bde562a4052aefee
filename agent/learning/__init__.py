"""Facts and insights that a model finds in conversations, and the checks of what it claims.

Nothing is learnt that no line of the person's own supports.
"""
