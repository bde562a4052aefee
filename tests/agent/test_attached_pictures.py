"""In which form a picture is shown: as it is, as a copy that stays, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.files.images import KeptPictures, OpenedFile, PicturesShown
from agent.files.scaler import PictureDamaged, PictureTooLarge, PillowScaler, ScaledPicture
from agent.files.sniff import signature_of
from agent.tools.tool import Caller
from agent.tools.workspace import PathRefused, Workspace
from memory.records.errors import AssistantError, StorageFull, Temporary
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from memory.records.transcript import Note
from tests.agent.files_kit import JPEG, gif, jpeg, png, webp

PATH = "files/results/telegram+5/2026-07-25/photo-1.jpg"
CALLER = Caller(
    person_id=PersonId("p1"),
    role=Role.OWNER,
    address=Address(channel="telegram", chat_id="5"),
    conversation=ConversationId("c1"),
    run_id=RunId("in-1"),
    is_group=False,
)
COPY = ScaledPicture(content=b"copy", media_type="image/jpeg", width=1_568, height=1_176)
LARGE = jpeg(900, 900) + b"\0" * 3_800_000
NOTED = jpeg(640, 480, mark=b"Exif\0\0and where it was")
TROUBLES: list[AssistantError] = [
    PictureTooLarge("It has more than 50 megapixels"),
    Temporary("It could not be made smaller now"),
]


class Scaler(PillowScaler):
    """Gives one copy for all, or raises."""

    def __init__(self, made: ScaledPicture | AssistantError = COPY) -> None:
        super().__init__()
        self._made = made
        self.asked: list[tuple[bytes, int, int]] = []

    async def scaled(self, content: bytes, *, side_max: int, bytes_max: int) -> ScaledPicture:
        self.asked.append((content, side_max, bytes_max))
        if isinstance(self._made, AssistantError):
            raise self._made
        return self._made


async def shown(folder: Path, content: bytes, scaler: Scaler | None) -> OpenedFile:
    pictures = PicturesShown(Workspace(folder), scaler, side_max=1_568)
    return await pictures.shown(PATH, content, signature_of(content), CALLER)


@pytest.mark.parametrize("content", [JPEG, jpeg(1_568, 900), png(8, 8), gif(9, 9), webp(9, 9)])
async def test_a_small_picture_without_notes_is_shown_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    scaler = Scaler()

    with_it, without = await shown(tmp_path, content, scaler), await shown(tmp_path, content, None)

    assert with_it == without
    assert with_it.picture is not None
    assert (with_it.picture.path, with_it.picture_bytes) == (PATH, len(content))
    assert (with_it.beside, scaler.asked) == ("", [])


@pytest.mark.parametrize(
    "content",
    [
        LARGE,
        jpeg(1_569, 900),
        NOTED,
        png(8, 8) + b"eXIf",
        png(8, 8) + b"XML:com.adobe.xmp",
        jpeg(9, 9, mark=b"http://ns.adobe.com/xap/1.0/"),
        jpeg(9, 9, mark=b"Photoshop 3.0"),
        gif(9, 9) + b"NETSCAPE2.0",
        webp(9, 9) + b"ANIM",
        webp(9, 9) + b"EXIF",
    ],
)
async def test_of_any_other_a_copy_is_shown_and_stays(tmp_path: Path, content: bytes) -> None:
    scaler = Scaler()

    found = await shown(tmp_path, content, scaler)

    assert scaler.asked == [(content, 1_568, 3_750_000)]
    assert found.beside == f"{PATH}.shown.jpg"
    assert (tmp_path / found.beside).read_bytes() == b"copy"
    assert found.picture is not None
    assert (found.picture.path, found.picture.media_type) == (found.beside, "image/jpeg")
    assert (found.picture.width, found.picture.height) == (1_568, 1_176)


async def test_the_model_is_told_the_size_of_the_picture_and_of_its_copy(tmp_path: Path) -> None:
    smaller = await shown(tmp_path, jpeg(4_000, 3_000), Scaler())
    turned = await shown(tmp_path, jpeg(1_176, 1_568, mark=b"Exif\0\0"), Scaler())

    assert smaller.said == ", 4000 by 3000 pixels, made smaller for you (1568 by 1176)"
    assert turned.said == ", 1176 by 1568 pixels"


async def test_the_same_bytes_are_sent_with_every_request(tmp_path: Path) -> None:
    found = await shown(tmp_path, LARGE, Scaler())
    assert found.picture is not None
    pictures = KeptPictures(Workspace(tmp_path))
    note = Note(text="came along", pictures=(found.picture,))

    first = await pictures.urls([note], CALLER)
    again = await pictures.urls([note], CALLER)

    assert first == again == {found.beside: "data:image/jpeg;base64,Y29weQ=="}


async def test_what_is_done_again_after_a_kill_comes_to_the_same(tmp_path: Path) -> None:
    first = await shown(tmp_path, LARGE, Scaler())

    assert await shown(tmp_path, LARGE, Scaler()) == first


async def test_a_damaged_one_is_told(tmp_path: Path) -> None:
    found = await shown(tmp_path, LARGE, Scaler(PictureDamaged("It is damaged")))

    assert found == OpenedFile(said=", 900 by 900 pixels. It is damaged, and cannot be shown")


@pytest.mark.parametrize("trouble", TROUBLES, ids=["large", "busy"])
async def test_one_that_cannot_be_made_smaller_is_shown_where_providers_take_it(
    tmp_path: Path, trouble: AssistantError
) -> None:
    found = await shown(tmp_path, jpeg(5_000, 4_000), Scaler(trouble))

    assert found.picture is not None
    assert (found.picture.path, found.beside) == (PATH, "")


@pytest.mark.parametrize("content", [LARGE, jpeg(9_000, 10), NOTED])
@pytest.mark.parametrize("trouble", TROUBLES, ids=["large", "busy"])
async def test_else_it_is_named_and_never_shown_with_its_notes(
    tmp_path: Path, content: bytes, trouble: AssistantError
) -> None:
    found = await shown(tmp_path, content, Scaler(trouble))

    assert found.picture is None
    assert found.said.endswith(f"{trouble}, so you cannot see it: ask for a smaller copy")


@pytest.mark.parametrize("content", [LARGE, jpeg(9_000, 10)])
async def test_without_the_extra_a_large_one_is_named_and_so_is_the_extra(
    tmp_path: Path, content: bytes
) -> None:
    found = await shown(tmp_path, content, None)

    assert found.picture is None
    assert "too large to be shown to you (at most 3.8 MB and 8,000 pixels a side)" in found.said
    assert "pip install 'hearthbot[pictures]'" in found.said


async def test_without_the_extra_all_others_are_shown_as_before(tmp_path: Path) -> None:
    for content in (NOTED, jpeg(5_000, 4_000), gif(9, 9) + b"NETSCAPE2.0"):
        found = await shown(tmp_path, content, None)

        assert found.picture is not None
        assert found.picture.path == PATH


async def test_a_copy_that_cannot_be_kept_is_an_error_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "files").write_bytes(b"in the way")

    with pytest.raises((PathRefused, StorageFull)):
        await shown(tmp_path, LARGE, Scaler())
