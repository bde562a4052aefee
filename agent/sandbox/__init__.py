"""Programs that are run for the assistant: confined where that works, bounded everywhere.

Called by the tools `exec` and `run_skill`, which say what may be seen and who has agreed.
"""
