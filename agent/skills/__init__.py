"""Skills: folders with a SKILL.md, read as found in the wild, and matched against messages.

`shelf` knows which there are, `matching` and `rules` which of them fit a message, `installing`
how one comes in. Called by the prompt, by the tools of the group `skills` and by `bot.app`. Never
runs anything that a skill brings.
"""
