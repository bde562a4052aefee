"""The texts of the workspace are read where they lie, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.prompt.templates import TextFiles


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "config.toml").write_text("api_key = 'sk-1'")
    return folder


def test_a_link_that_leads_out_of_the_workspace_is_not_read_and_told_once(workspace: Path) -> None:
    (workspace / "AGENTS.md").symlink_to(workspace.parent / "config.toml")
    (workspace / "memory").symlink_to(workspace.parent)
    files = TextFiles(within=workspace)

    with capture_logs() as logs:
        found = [files.read(workspace / "AGENTS.md") for _ in range(3)]
        found.append(files.read(workspace / "memory" / "config.toml"))

    assert found == [None] * 4
    assert [entry["file"] for entry in logs] == ["AGENTS.md", "config.toml"]


def test_a_link_within_the_workspace_is_followed(workspace: Path) -> None:
    (workspace / "files").mkdir()
    (workspace / "files" / "mine.md").write_text("be kind")
    (workspace / "SOUL.md").symlink_to(workspace / "files" / "mine.md")

    assert TextFiles(within=workspace).read(workspace / "SOUL.md") == "be kind"


def test_a_file_that_became_a_link_out_is_not_served_from_memory(workspace: Path) -> None:
    path = workspace / "AGENTS.md"
    path.write_text("be kind")
    files = TextFiles(within=workspace)
    assert files.read(path) == "be kind"

    path.unlink()
    path.symlink_to(workspace.parent / "config.toml")

    assert files.read(path) is None


def test_what_the_owner_names_elsewhere_is_read(workspace: Path) -> None:
    (workspace.parent / "persona.md").write_text("be brief")

    assert TextFiles(within=workspace).read(workspace.parent / "persona.md") == "be brief"
