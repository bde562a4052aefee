"""One guarded client for every address that a person, a model or a page names, and web search.

No link, redirect or name may lead to a private address that the owner did not allow, and no fetch
may go around `agent.web.client`.
"""
