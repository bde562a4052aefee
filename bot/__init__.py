"""The doors to the world, and the place where all is put together.

Started by the command line. Channels bring messages to the door, the outbox takes replies back.
It must never decide what the assistant says: that is `agent`.
"""
