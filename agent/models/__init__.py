"""Language models behind the one port `memory.records.ports.Model`: choice, clients, fallback.

A provider's format, errors and library are known nowhere else. A call is repeated in `fallback`
alone, and carries all that it needs: no conversation is kept here.
"""
