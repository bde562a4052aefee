"""Telegram by python-telegram-bot: polls, webhook, sending, menus.

No other package knows that library.
"""
