"""All that is kept, in one SQLite file: records, database, stores, facts, search and erasure.

It asks no language model and sends nothing; of the other packages it imports only what
`pyproject.toml` lists as exceptions.
"""
