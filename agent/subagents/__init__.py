"""Tasks that the assistant hands to a model of their own, at once or in the background.

A subagent has no rights that its parent has not, and what it spends is its parent's.
"""
