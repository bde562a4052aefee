"""What is remembered, in a chat: `/memory`, `/remember`, `/private`, `/undo`, and forgetting.

What cannot be brought back is done after a question alone.
"""
