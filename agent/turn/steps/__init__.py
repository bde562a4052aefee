"""The steps of a turn that do something: begin, ask the model, run tools.

A step is given its state and returns what the journal keeps; it holds nothing itself.
"""
