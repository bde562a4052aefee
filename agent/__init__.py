"""The assistant itself: turns, prompt, policy, tools, models, skills and learning.

It never imports `bot` or `scheduler`, and speaks no SQL: it asks the stores of `memory`.
"""
