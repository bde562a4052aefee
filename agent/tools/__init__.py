"""Tools that the assistant can call: what one is, which are offered, and the workspace they act in.

A tool that fails never ends a turn, and none decides for itself whether it may run.
"""
