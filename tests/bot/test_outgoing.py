"""The private copies of files on their way out."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from bot.outbox.files import CopyGone, OutgoingFiles


def test_a_copy_is_private_named_by_its_content_and_kept_once(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "outgoing"
    copies = OutgoingFiles(folder)

    digests = {copies.keep(b"the plan"), copies.keep(b"the plan")}

    assert digests == {hashlib.sha256(b"the plan").hexdigest()}
    [copy] = folder.iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert copies.read(copy.name) == b"the plan"


def test_a_sweep_leaves_what_is_needed_and_what_is_not_ours(tmp_path: Path) -> None:
    copies = OutgoingFiles(tmp_path)
    needed, old = copies.keep(b"one"), copies.keep(b"two")
    (tmp_path / f".{'0' * 16}.part").write_bytes(b"half")
    (tmp_path / "note.txt").write_text("mine")

    assert copies.sweep({needed}) == 2

    assert {file.name for file in tmp_path.iterdir()} == {needed, "note.txt"}
    assert not (tmp_path / old).exists()
    assert OutgoingFiles(tmp_path / "nowhere").sweep(()) == 0


@pytest.mark.parametrize("name", ["../secret", "x" * 64, "", "0" * 63])
def test_a_name_that_is_no_digest_reads_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("canary")

    with pytest.raises(CopyGone):
        OutgoingFiles(tmp_path / "copies").read(name)


def test_a_copy_that_was_changed_or_became_a_link_is_not_sent(tmp_path: Path) -> None:
    copies = OutgoingFiles(tmp_path / "copies")
    changed, linked = copies.keep(b"one"), copies.keep(b"two")
    (tmp_path / "copies" / changed).write_bytes(b"other")
    (tmp_path / "copies" / linked).unlink()
    (tmp_path / "two").write_bytes(b"two")
    (tmp_path / "copies" / linked).symlink_to(tmp_path / "two")

    for digest in (changed, linked):
        with pytest.raises(CopyGone):
            copies.read(digest)
