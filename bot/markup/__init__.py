"""Markdown as models write it, made fit for each platform and cut to its limits.

Text is never lost for its markup: what cannot be shown goes out plain.
"""
