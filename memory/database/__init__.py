"""The one SQLite file: opened with care, migrated, backed up, watched for damage.

Nothing outside of `memory` speaks SQL or holds a connection.
"""
