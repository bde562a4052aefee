"""Forgetting for good: every place of a text is found, emptied and looked at again.

Nothing is called erased before a scan of the whole file has proved it.
"""
