"""The set-up wizard in the terminal, step by step.

Nothing is saved before the last question.
"""
