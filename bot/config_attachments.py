"""The section of the settings about files that come with messages."""

from __future__ import annotations

from pydantic import Field

from bot.config_section import Section


class AttachmentsSettings(Section):
    """Files that people send: pictures, documents, voice notes."""

    max_mb: float = Field(
        default=20.0,
        gt=0,
        le=100,
        description="Megabytes of a file that is fetched; of a larger one the assistant says that "
        "it is too large. Telegram gives a bot 20 at most.",
    )
    text_chars: int = Field(
        default=8000,
        ge=0,
        le=200_000,
        description="Characters of the documents of one message that the model reads at once; it "
        "reads on with read_file.",
    )
    picture_side: int = Field(
        default=1568,
        ge=256,
        le=3000,
        description="Pixels of the longest side of a picture as the model is shown it: of a larger "
        "one it gets a smaller copy. Needs the extra `pictures`; without it pictures are shown as "
        "they are, or not at all.",
    )
