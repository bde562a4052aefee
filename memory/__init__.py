"""What is remembered, in one SQLite file.

Called through the ports of `agent` and `bot`. It is the only package with SQL; it must never call
a channel or start work of its own.
"""
