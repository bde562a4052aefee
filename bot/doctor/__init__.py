"""Checks of an installation, each with its fix.

Without `--fix` nothing is changed.
"""
