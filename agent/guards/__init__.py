"""Checks of what a model wrote: hidden text, repetition, claims of deeds that were not done.

A guard repairs or marks a reply; it never loses one.
"""
