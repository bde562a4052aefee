"""How results reach people: delivery, dedup, quiet hours, what is too trivial to tell.

Nothing that was due is dropped in silence.
"""
