"""Skills: folders with a SKILL.md, read as found in the wild, and matched against messages.

Nothing here runs what a skill brings.
"""
