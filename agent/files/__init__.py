"""Files that people send and receive: recognised by content, read, scaled, transcribed.

Content from outside is parsed in a process of its own.
"""
