"""The command `hearthbot`."""

from __future__ import annotations

from bot.cli.main import app


def main() -> None:
    """Runs the command line."""
    app()


if __name__ == "__main__":
    main()
