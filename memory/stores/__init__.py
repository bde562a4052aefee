"""Tables, a store each: inbox, outbox, turns, conversations, people, jobs, usage, traces.

A store keeps rows and decides nothing; each change is one transaction.
"""
