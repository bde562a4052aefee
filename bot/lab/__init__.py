"""Stand-ins for Telegram, Slack and the model, with their limits enforced and faults on demand.

Called by tests, by the bench and by `hearthbot lab`, for owners who rehearse their own setup.
They never import the rest of the assistant, and never reach outside the machine.
"""
