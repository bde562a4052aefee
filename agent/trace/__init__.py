"""What went into a model call and why: inspection, prefix cache, differences, dry runs.

It reads what was kept and changes nothing.
"""
