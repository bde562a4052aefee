"""Tools that other programs bring along, by the Model Context Protocol (SPEC §6).

Built by `bot.app`, asked by the toolbox and the owner's desk. What a server says is attacker's
text until the owner approved it (threat T23), and never gets past `agent.mcp.tools` unchecked.
"""
