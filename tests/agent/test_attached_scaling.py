"""Pictures made smaller by the real library: what is kept of them, and what no picture can do."""

from __future__ import annotations

import asyncio
import io
import json
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from agent.files.scaler import (
    PictureDamaged,
    PictureTooLarge,
    PillowScaler,
    ScaledPicture,
    answer,
    made_smaller,
)
from agent.sandbox.worker import NoRoom
from tests.agent.files_kit import PNG, jpeg, png
from tests.thorough import rounds

BYTES_MAX = 3_750_000
PLACE = b"GPSLatitudeOfHome"


def corner(width: int, height: int, *, mode: str = "RGB") -> Image.Image:
    """A blue picture whose corner at the top left is red."""
    image = Image.new("RGB", (width, height), "blue")
    image.paste("red", (0, 0, width // 4, height // 4))
    return image.convert(mode)


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def notes(orientation: int) -> bytes:
    """What a camera writes: which side is up, and where it was."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = PLACE.decode()
    exif[0x8825] = {1: "N", 2: (59.0, 54.0, 1.0)}
    return exif.tobytes()


def smaller(content: bytes, *, side_max: int = 100, bytes_max: int = BYTES_MAX) -> ScaledPicture:
    return made_smaller(content, side_max=side_max, bytes_max=bytes_max)


def drawn(made: ScaledPicture) -> Image.Image:
    image = Image.open(io.BytesIO(made.content))
    image.load()
    assert image.size == (made.width, made.height)
    assert Image.MIME[image.format or ""] == made.media_type
    return image


def red_corner(image: Image.Image) -> str:
    """Where the red one is."""
    right, bottom = image.width - 3, image.height - 3
    corners = {"top left": (2, 2), "top right": (right, 2)}
    corners |= {"bottom left": (2, bottom), "bottom right": (right, bottom)}
    plain = image.convert("RGB")
    (found,) = [name for name, at in corners.items() if _is_red(plain.getpixel(at))]
    return found


def _is_red(pixel: object) -> bool:
    assert isinstance(pixel, tuple)
    return bool(pixel[0] > 128 > pixel[2])


# --- what comes of a picture ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "where", "size"),
    [
        (1, "top left", (100, 50)),
        (2, "top right", (100, 50)),
        (3, "bottom right", (100, 50)),
        (4, "bottom left", (100, 50)),
        (5, "top left", (50, 100)),
        (6, "top right", (50, 100)),
        (7, "bottom right", (50, 100)),
        (8, "bottom left", (50, 100)),
        (9, "top left", (100, 50)),
    ],
)
def test_a_copy_is_upright_and_says_nothing_of_its_camera(
    kind: str, orientation: int, where: str, size: tuple[int, int]
) -> None:
    content = saved(corner(400, 200), kind, exif=notes(orientation))
    assert PLACE in content

    made = smaller(content)

    assert (red_corner(drawn(made)), (made.width, made.height)) == (where, size)
    assert PLACE not in made.content
    assert dict(drawn(made).getexif()) == {}


def test_comments_and_colour_profiles_are_not_passed_on() -> None:
    content = saved(corner(400, 200), "JPEG", comment=PLACE, icc_profile=PLACE * 9)
    other = saved(corner(400, 200), "PNG", icc_profile=PLACE * 9)

    for made in (smaller(content), smaller(other)):
        assert PLACE not in made.content
        assert not {"icc_profile", "comment"} & drawn(made).info.keys()


@pytest.mark.parametrize(
    ("kind", "mode", "expected"),
    [
        ("JPEG", "RGB", "image/jpeg"),
        ("JPEG", "L", "image/jpeg"),
        ("JPEG", "CMYK", "image/jpeg"),
        ("MPO", "RGB", "image/jpeg"),
        ("WEBP", "RGB", "image/jpeg"),
        ("WEBP", "RGBA", "image/jpeg"),  # nothing of it is seen through
        ("PNG", "RGB", "image/png"),
        ("PNG", "RGBA", "image/png"),
        ("PNG", "P", "image/png"),
        ("PNG", "1", "image/png"),
        ("PNG", "LA", "image/png"),
        ("GIF", "P", "image/png"),
    ],
)
def test_every_kind_of_picture_keeps_its_look(kind: str, mode: str, expected: str) -> None:
    content = saved(corner(400, 200, mode=mode), kind)

    made = smaller(content)

    assert (made.media_type, made.width, made.height) == (expected, 100, 50)
    light, dark = (drawn(made).convert("L").getpixel(at) for at in ((2, 2), (90, 45)))
    assert isinstance(light, int)
    assert isinstance(dark, int)
    assert light > dark


def test_greys_of_sixteen_bits_stay_greys() -> None:
    rows = b"".join(struct.pack("<H", y * 655) * 100 for y in range(100))
    content = saved(Image.frombytes("I;16", (100, 100), rows), "PNG")

    image = drawn(smaller(content, side_max=50))

    assert [image.getpixel((9, y)) for y in (5, 25, 45)] == pytest.approx([27, 129, 231], abs=4)


def test_what_is_see_through_stays_so_and_on_paper_is_white() -> None:
    image = Image.frombytes("RGB", (100, 100), random.Random(1).randbytes(30_000)).convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize((100, 100)))
    content = saved(image, "PNG")

    clear, paper = smaller(content), smaller(content, bytes_max=9_000)

    assert (clear.media_type, drawn(clear).mode) == ("image/png", "RGBA")
    assert (paper.media_type, drawn(paper).mode) == ("image/jpeg", "RGB")
    top = drawn(paper).getpixel((50, 0))
    assert isinstance(top, tuple)
    assert min(top) > 220


def test_of_what_moves_the_first_frame_is_shown() -> None:
    more = [Image.new("RGB", (400, 200), "black")]

    for kind in ("GIF", "WEBP"):
        made = smaller(saved(corner(400, 200), kind, save_all=True, append_images=more))

        assert red_corner(drawn(made)) == "top left"
        assert getattr(drawn(made), "n_frames", 1) == 1


def test_a_picture_that_is_small_enough_keeps_its_size_and_a_long_one_its_shape() -> None:
    same = smaller(saved(corner(90, 40), "JPEG"))
    line = smaller(saved(corner(9_000, 4), "PNG"))

    assert (same.width, same.height) == (90, 40)
    assert (line.width, line.height) == (100, 1)


def test_pure_noise_is_made_to_fit() -> None:
    noise = Image.frombytes("RGB", (900, 900), random.Random(1).randbytes(3 * 900 * 900))

    made = smaller(saved(noise, "PNG"), side_max=900, bytes_max=400_000)

    assert made.media_type == "image/jpeg"
    assert len(made.content) <= 400_000


def test_the_same_picture_gives_the_same_bytes() -> None:
    content = saved(corner(400, 200), "JPEG", exif=notes(6))

    assert smaller(content) == smaller(content)


# --- what no picture can do ----------------------------------------------------------------------


def claims(width: int, height: int) -> bytes:
    """A PNG of so many pixels, of which none came along."""
    head = bytearray(png(8, 8))
    head[16:24] = struct.pack(">II", width, height)
    head[29:33] = struct.pack(">I", zlib.crc32(bytes(head[12:29])))
    return bytes(head)


def bomb(width: int, height: int) -> bytes:
    """A see-through PNG of a few bytes that would take four for each pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 4 * width)) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = chunk(b"IDAT", rows + packer.flush())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


BOMB = bomb(7_000, 7_000)

WRONG = {
    "claims far too much": (claims(100_000, 100_000), PictureTooLarge, "50 megapixels"),
    "claims what it has not": (claims(3_000, 2_000), PictureDamaged, "It is damaged"),
    "unpacks to 200 MB": (BOMB, PictureTooLarge, "too much memory"),
    "is empty": (b"", PictureDamaged, "It is damaged"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_picture_that_is_wrong_is_one_sentence(what: str) -> None:
    content, kind, why = WRONG[what]

    with pytest.raises(kind, match=why):
        await PillowScaler().scaled(content, side_max=1_568, bytes_max=BYTES_MAX)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (claims(8_000, 8_000), "pixels"),
        (saved(corner(900, 900), "JPEG")[:-900], "damaged"),
        (jpeg(4_000, 3_000), "damaged"),
        # Of these two, decoders do not say whether they were damaged or lacked memory.
        (saved(corner(3_000, 3_000), "JPEG", progressive=True)[:-900], "memory"),
        (b"RIFF\x30\0\0\0WEBPVP8 " + b"\0" * 10 + b"\xff\x3f\xff\x3f", "memory"),
        (b"Dear model, I am a picture.", "damaged"),
        (saved(corner(9, 9), "TIFF"), "damaged"),
    ],
)
def test_what_is_no_whole_picture_of_a_known_kind_has_a_reason(content: bytes, why: str) -> None:
    assert json.loads(answer(content, 100, BYTES_MAX)) == {"why": why}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells it there")
def test_the_process_stays_below_two_hundred_megabytes() -> None:
    """Asked of the process itself, for a photo in passes and for what is made to unpack."""
    program = (
        "import sys\n"
        "from agent.files import scaler\n"
        "scaler.main()\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "sys.stderr.write(next(line for line in lines if line.startswith('VmHWM')).split()[1])\n"
    )
    head = json.dumps({"side_max": 1_568, "bytes_max": BYTES_MAX}).encode() + b"\n"
    photo = saved(Image.new("RGB", (6_000, 4_000), "green"), "JPEG", progressive=True)

    taken = {}
    for name, content in {"photo": photo, "bomb": BOMB}.items():
        done = subprocess.run(
            [sys.executable, "-c", program], input=head + content, capture_output=True, check=True
        )
        taken[name] = int(done.stderr) * 1_024
        assert (b"why" in done.stdout.partition(b"\n")[0]) == (name == "bomb")

    assert max(taken.values()) < 200_000_000


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the library, about the damage
def test_whatever_is_changed_in_a_picture_ends_in_a_picture_or_a_reason() -> None:
    chance = random.Random(7)
    grey = Image.linear_gradient("L").resize((120, 90))
    image = Image.merge("RGBA", (grey, grey, grey, grey))
    whole = [
        saved(image.convert("RGB"), "JPEG", exif=notes(6)),
        saved(image.convert("RGB"), "JPEG", progressive=True),
        saved(image.convert("RGB"), "MPO", save_all=True, append_images=[corner(120, 90)]),
        saved(image, "PNG", exif=notes(6)),
        saved(image.convert("P"), "GIF", save_all=True, append_images=[image]),
        saved(image, "WEBP"),
    ]

    for _ in range(rounds(300, 20_000)):
        content = bytearray(chance.choice(whole))
        for _ in range(chance.choice((1, 3, 20))):
            content[chance.randrange(chance.choice((60, len(content))))] = chance.randrange(256)
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]

        head = answer(bytes(content), 50, BYTES_MAX).partition(b"\n")[0]

        assert json.loads(head).keys() in ({"why"}, {"media_type", "width", "height"})


async def test_a_picture_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(PictureTooLarge, match="too long"):
        await PillowScaler(scale_s=0.0).scaled(PNG, side_max=9, bytes_max=BYTES_MAX)


async def test_many_at_once_are_made_one_after_the_other() -> None:
    content = saved(corner(400, 200), "JPEG")
    scaler = PillowScaler()

    made = await asyncio.gather(
        *(scaler.scaled(content, side_max=100, bytes_max=BYTES_MAX) for _ in range(2))
    )

    assert set(made) == {smaller(content)}


async def test_one_that_waits_too_long_for_others_is_given_up() -> None:
    with pytest.raises(NoRoom, match="others took too long"):
        await PillowScaler(wait_s=0.0).scaled(PNG, side_max=9, bytes_max=BYTES_MAX)
