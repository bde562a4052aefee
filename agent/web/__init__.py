"""The world beyond this machine, as somebody else names it: one guarded client for all fetches.

Called by the tools of `agent.tools.web` and by whoever downloads what a person, a model or a page
named. Nothing here may follow a link, a redirect or a name to a private address that the owner did
not allow, and nothing may go around `agent.web.client` (threat T11).
"""
