"""Tools that the assistant can call, a module for each group, and the workspace they act in.

A tool that fails never ends a turn, and none decides for itself whether it may run.
"""
