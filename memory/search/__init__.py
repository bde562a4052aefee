"""Full-text and vector search over facts, documents and old conversations.

An index holds nothing that its source does not: it can be made anew at any time.
"""
