"""Slash commands and what they act on.

A command acts for who sent it, in the chat where it was sent.
"""
