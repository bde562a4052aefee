"""Messages on their way in: stored, confirmed, admitted, handed to a turn.

Nothing is confirmed to a platform before it is stored.
"""
