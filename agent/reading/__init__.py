"""Turns files that people saved into text: plain text, tables, JSON, web pages, PDF and Word.

`agent.reading.files` is the one door, and reads each file in a process of its own: what stands in a
file is somebody else's, and may be made to harm. Called by tools; knows no database and no chat.
"""
