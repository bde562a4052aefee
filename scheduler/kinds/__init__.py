"""What a job does when it is due: a message, a turn of the assistant, or a heartbeat with its
checks; and what is done once a conversation has gone quiet.

A kind acts through what it is given, and never keeps the truth about its work in memory.
"""
