"""A turn from the message to its reply: engine, steps, loop, end.

Each step is kept before the next begins, so that a killed turn goes on and does nothing twice.
"""
