"""Whether a tool call may happen: approval, taint, egress, and what the card says.

Code decides here, whatever the model was talked into.
"""
