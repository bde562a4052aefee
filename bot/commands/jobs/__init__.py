"""Jobs in a chat: `/remind`, `/jobs`, `/job`, `/quiet` and `/heartbeat`, and their buttons.

Nothing is saved unseen, and nobody answers for somebody else.
"""
