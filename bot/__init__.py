"""Channels, inbox, outbox, commands, command line and settings, and the App that builds all parts.

It is on top: it may import all the others and is imported by none. What the assistant says is
decided in `agent`, never here.
"""
