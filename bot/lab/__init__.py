"""Stand-ins for Telegram, Slack and the model, with their limits enforced and faults on demand.

They import no other part of `bot`, and never reach outside of the machine.
"""
