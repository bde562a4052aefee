"""What may be spent, what was spent, and the brake that stops a run gone wild.

The budget is asked before each call to a model, never after.
"""
