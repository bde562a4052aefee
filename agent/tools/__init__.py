"""What the assistant can do: one module per group of tools, called by the steps of a turn.

A tool that fails never ends a turn. Nothing here reaches outside the workspace or the ports that
a tool was given; nothing here knows a provider, a channel or SQL.
"""
