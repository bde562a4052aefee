"""Tools that MCP servers bring: connections, schemas, calls, and how a tool is shown for approval.

What a server says is untrusted text until the owner has approved it, and never passes
`agent.mcp.tools` unchecked.
"""
