"""Talking in the terminal: `hearthbot chat`, and `hearthbot lab` with stand-ins.

What others wrote never steers the terminal.
"""
