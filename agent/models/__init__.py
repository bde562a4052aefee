"""Language models behind the one port `memory.records.ports.Model`.

`agent.turn.loop` calls them, `bot.app` builds them (`choose` says which). A provider's format, its
error wordings and its libraries exist only here. Never retries outside `retry`, and never keeps a
conversation: every call carries all it needs.
"""
