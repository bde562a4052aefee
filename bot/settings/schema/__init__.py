"""Sections of the settings, as the components that they configure use them.

Defaults stand here and nowhere else.
"""
