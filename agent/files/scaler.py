"""Makes a picture smaller, in a process of its own, within bounds on time and memory.

The only module that knows Pillow, the extra `pictures`, which is loaded in that process alone: the
bot itself takes no more memory and starts no later for it. Called by `agent.files.images`.
"""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.files.sniff import picture_of
from agent.sandbox.worker import Worker, bound_itself
from memory.records.errors import Permanent

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose

INSTALL = "pip install 'hearthbot[pictures]'"

SCALE_S = 20.0
CPU_S = 15
WAIT_S = 60.0
"""Seconds that one picture may take, and how long it waits for others and itself: one is made at a
time, so that the memory for it is needed once."""

WORK_BYTES = 160_000_000
"""What the process may take beyond the 40 MB of Python and Pillow: below 200 MB all in all."""

PIXELS_MAX = 50_000_000
"""Of no kind of picture are more decoded. The memory does for that many of a usual JPEG, which is
decoded at a part of its size; of others it ends sooner: at 20 to 40 megapixels of a JPEG that comes
in passes, 28 of a PNG (14 if it is see-through), 20 of a GIF, 9 of a WebP."""

PIXELS_SURE = 8_000_000
"""Up to here there is memory for every kind, so what fails is damaged."""

PNG_BYTES_MAX = 1_000_000
"""What is drawn or see-through stays a PNG up to here: a screenshot has 100 to 600 kB."""

ANSWER_BYTES_MAX = 16_000_000

QUALITIES = (85, 70, 50)
"""Of a JPEG. The first is good enough to read small print; the others are for what is all noise."""

_FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
_ORIENTATION = 0x0112


def is_installed() -> bool:
    """Return whether Pillow is there; it is not loaded to find out."""
    return importlib.util.find_spec("PIL") is not None


class PictureDamaged(Permanent):
    """A picture that cannot be drawn; the text is a sentence about it."""


class PictureTooLarge(Permanent):
    """A picture that takes too much to be made smaller; the text is a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPicture:
    """A picture made smaller; its size is in pixels."""

    content: bytes
    media_type: str
    width: int
    height: int


class PillowScaler:
    """Makes pictures smaller, one at a time. May be called by many tasks at once, and again for the
    same."""

    def __init__(self, *, scale_s: float = SCALE_S, wait_s: float = WAIT_S) -> None:
        self._worker = Worker(
            __name__, read_s=scale_s, answer_bytes_max=ANSWER_BYTES_MAX, wait_s=wait_s
        )

    async def scaled(self, content: bytes, *, side_max: int, bytes_max: int) -> ScaledPicture:
        """Upright, its first frame, within so many pixels a side and bytes, without notes of the
        camera: the same for the same picture. Raises PictureDamaged, PictureTooLarge and Temporary,
        each with a sentence about the picture, without its end."""
        head = json.dumps({"side_max": side_max, "bytes_max": bytes_max}).encode()
        sorry = "It could not be made smaller now, since {why}"
        try:
            found = await self._worker.answer(head + b"\n" + content, sorry=sorry)
        except TimeoutError as error:
            raise PictureTooLarge("It takes too long to be made smaller") from error
        head, _, scaled = found.partition(b"\n")
        if not head:  # it ended without a word
            raise PictureTooLarge(
                "It is damaged, or needs too much time or memory to be made smaller"
            )
        said = json.loads(head)
        match said.get("why"):
            case "damaged":
                raise PictureDamaged("It is damaged")
            case "pixels":
                raise PictureTooLarge(
                    f"It has more than {PIXELS_MAX // 1_000_000} megapixels, too many to be made "
                    "smaller"
                )
            case "memory":
                raise PictureTooLarge("It is damaged, or needs too much memory to be made smaller")
            case _:
                return ScaledPicture(content=scaled, **said)


# --- in the process ------------------------------------------------------------------------------


def main() -> None:
    """The process: a line of JSON and a picture on standard input, such a line and the smaller one
    on standard output."""
    # What Python has of addresses before it has done anything differs by system.
    taken = 40_000_000
    with suppress(OSError):
        import resource

        pages = Path("/proc/self/statm").read_text("ascii").split()[0]
        taken = int(pages) * resource.getpagesize()
    bound_itself(cpu_s=CPU_S, memory_bytes=taken + WORK_BYTES)
    asked = json.loads(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read()
    sys.stdout.buffer.write(answer(content, asked["side_max"], asked["bytes_max"]))


class _TooManyPixels(Exception):
    """More than PIXELS_MAX."""


def answer(content: bytes, side_max: int, bytes_max: int) -> bytes:
    """A line of JSON, and behind it the smaller picture; or in the line `why` there is none."""
    try:
        made = made_smaller(content, side_max=side_max, bytes_max=bytes_max)
    except _TooManyPixels:
        return _why("pixels")
    except MemoryError:
        return _why("memory")
    except (OSError, SyntaxError, ValueError, EOFError, struct.error):
        return _why("damaged")
    said = {"media_type": made.media_type, "width": made.width, "height": made.height}
    return json.dumps(said).encode() + b"\n" + made.content


def _why(why: str) -> bytes:
    return json.dumps({"why": why}).encode() + b"\n"


def made_smaller(content: bytes, *, side_max: int, bytes_max: int) -> ScaledPicture:
    """The picture, here and now: upright, its first frame, of at most `side_max` pixels a side, and
    without a word about where, when and by what it was taken. The same picture gives the same
    bytes. Raises what Pillow raises, and ValueError."""
    from PIL.Image import Resampling

    image = _opened(content)
    is_drawn = image.format in {"PNG", "GIF"}
    factor = min(1.0, side_max / max(image.size))
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    may_lack_memory = "progressive" in image.info and image.width * image.height > PIXELS_SURE
    # A JPEG is decoded at a half, a quarter or an eighth of its size, if that is not below `size`.
    image.draft(None, size)
    try:
        image.load()
    except OSError as error:
        if may_lack_memory:  # which is told as damage too
            raise MemoryError from error
        raise
    turn = _turn(image)
    coloured = _in_colours(image)
    if coloured.size != size:
        coloured = coloured.resize(size, Resampling.LANCZOS)
    scaled = coloured
    if scaled.mode in {"RGBA", "LA"}:  # see-through only where it really is
        is_opaque = scaled.getchannel("A").getextrema() == (255, 255)
        scaled = scaled.convert("RGB" if is_opaque else "RGBA")
    elif scaled.mode == "CMYK":
        scaled = scaled.convert("RGB")
    if turn is not None:
        scaled = scaled.transpose(turn)
    scaled.info.clear()  # some of it would be written: a comment, a colour profile
    media_type, made = _encoded(scaled, bytes_max, is_drawn=is_drawn)
    return ScaledPicture(
        content=made, media_type=media_type, width=scaled.width, height=scaled.height
    )


def _opened(content: bytes) -> Image:
    """Its head alone is read here. Of the many kinds that Pillow knows, no other is tried."""
    from PIL import (  # noqa: F401 - loading one makes its kind known
        GifImagePlugin,
        Image,
        JpegImagePlugin,
        PngImagePlugin,
        WebPImagePlugin,
    )

    Image.MAX_IMAGE_PIXELS = PIXELS_MAX
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        image = Image.open(io.BytesIO(content), formats=_FORMATS)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise _TooManyPixels from error
    except OSError as error:
        # The decoder of a WebP takes what it needs at once, and tells a lack of it as damage.
        found = picture_of(content)
        is_webp = found is not None and found.media_type == "image/webp"
        if found is not None and is_webp and found.width * found.height > PIXELS_SURE:
            raise MemoryError from error
        raise
    return image


def _turn(image: Image) -> Transpose | None:
    """Return how it is to be turned, as the camera noted. A note that is damaged says nothing."""
    from PIL.Image import Transpose

    try:
        noted = image.getexif().get(_ORIENTATION)
    except (OSError, SyntaxError, ValueError, TypeError, KeyError, EOFError, struct.error):
        return None
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return turns.get(noted) if isinstance(noted, int) else None


def _in_colours(image: Image) -> Image:
    """In a form that can be scaled: a palette, for one, has no colours in between."""
    if image.has_transparency_data:
        return image if image.mode in {"RGBA", "LA"} else image.convert("RGBA")
    match image.mode:
        case "L" | "RGB" | "CMYK":
            return image
        case "1":
            return image.convert("L")
        case mode if mode.startswith("I"):  # greys of 16 bits
            return image.point(lambda value: value / 256).convert("L")
        case _:
            return image.convert("RGB")


def _encoded(image: Image, bytes_max: int, *, is_drawn: bool) -> tuple[str, bytes]:
    """As PNG what is drawn or see-through, if that is small; else as JPEG, on white."""
    from PIL import Image as Images

    if is_drawn or image.mode == "RGBA":
        made = _saved(image, "PNG")
        if len(made) <= min(PNG_BYTES_MAX, bytes_max):
            return "image/png", made
    opaque = image
    if image.mode == "RGBA":
        opaque = Images.new("RGB", image.size, "white")
        opaque.paste(image, mask=image.getchannel("A"))
    for quality in QUALITIES:
        made = _saved(opaque, "JPEG", quality=quality)
        if len(made) <= bytes_max:
            return "image/jpeg", made
    raise MemoryError


def _saved(image: Image, kind: str, **how: int) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()
