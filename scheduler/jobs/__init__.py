"""Jobs: created, changed, forecast and made from skills.

A job acts with the rights of whoever agreed to it.
"""
