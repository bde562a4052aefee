"""The layers of the prompt, each a function of what is known of the turn.

What comes from outside stands in them as a quote.
"""
