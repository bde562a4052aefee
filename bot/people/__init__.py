"""Who may talk to the bot: access, pairing, linked accounts, time zones, approvals.

A stranger gets a code and nothing else.
"""
