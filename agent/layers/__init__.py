"""One function a prompt layer, grouped by where the words come from.

Called by `agent.prompt` in the order of its LAYERS. A layer must never read a clock or a file:
everything it may say stands in the Scene.
"""
