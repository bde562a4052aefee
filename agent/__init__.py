"""The assistant itself: turns, prompt, policy, tools, models, skills and learning.

It never imports `bot` or `scheduler`, and of `memory` the records alone; only `agent.budget`,
`agent.models`, `agent.history` and `agent.learning` use the stores.
"""
