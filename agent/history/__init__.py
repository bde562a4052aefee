"""The part of a conversation that fits into a prompt, and summaries of the rest.

A summary never replaces what was said: that stays stored and can be found.
"""
