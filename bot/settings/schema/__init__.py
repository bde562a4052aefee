"""Sections of the settings: keys, types, defaults and limits.

A section holds values and checks them; it does nothing with them.
"""
