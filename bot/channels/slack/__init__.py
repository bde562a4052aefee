"""Slack by Bolt's parts: Socket Mode, HTTP, sending, modals, App Home, assistant pane.

No other package knows that library.
"""
