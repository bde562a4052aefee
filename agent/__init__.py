"""The core: what the assistant is.

Called by `bot` (a message came in) and by `scheduler` (a time has come). It must never import
another package of ours, never speak SQL, and never know a channel or a provider by name.
"""
