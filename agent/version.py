"""The version, kept equal to pyproject.toml by a test."""

VERSION = "0.1.0"
