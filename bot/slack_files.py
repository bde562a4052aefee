"""Files that people shared in Slack: where one lies, and how it is fetched with the bot's token.

Called by `bot.slack`. The token goes to the workspace's own hosts and nowhere else.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from agent.attached_ports import FileUnavailable
from agent.errors import Temporary
from agent.messages import Attachment
from bot.downloads import Downloads, too_large
from bot.slack_web import Limited, SaidNo, SlackTrouble, SlackWeb

HOST = "Slack"
FILES_ORIGIN = "https://files.slack.com"

PICTURE_BYTES_MAX = 3_000_000
"""Of a larger picture the copy of 1,024 pixels is fetched that Slack makes."""

_GONE = frozenset({"file_deleted", "file_not_found"})


class SlackFiles:
    """The files of one workspace."""

    def __init__(self, web: SlackWeb, *, token: str, base_url: str, silence_s: float) -> None:
        self._web = web
        self._token = token
        self._base_url = base_url
        self._downloads = Downloads(host=HOST, silence_s=silence_s)

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file, of a large picture a smaller copy. Raises FileUnavailable, Temporary."""
        about = await self._about(attachment.ref)
        size, copy = about.get("size"), _copy_of(about)
        if copy is None and isinstance(size, int) and size > bytes_max:
            raise too_large(bytes_max)
        url = copy or about.get("url_private_download") or about.get("url_private")
        if about.get("is_external") is True or not isinstance(url, str) or not url:
            raise FileUnavailable("it lies with another service, and Slack has only a link to it")
        if not is_ours(url, self._base_url):
            raise FileUnavailable("it lies at a host that is not Slack's")
        headers = {"Authorization": f"Bearer {self._token}"}
        return await self._downloads.get(url, bytes_max=bytes_max, headers=headers)

    async def _about(self, file_id: str) -> dict[str, Any]:
        try:
            heard = await self._web.call("files.info", file=file_id)
        except Limited as error:
            raise Temporary(str(error), retry_after_s=error.seconds) from error
        except SaidNo as error:
            if error.error in _GONE:
                raise FileUnavailable("it was deleted in Slack") from error
            raise FileUnavailable(str(error)) from error
        except SlackTrouble as error:
            raise Temporary(str(error)) from error
        about = heard.data.get("file")
        if not isinstance(about, dict):
            raise Temporary("Slack's answer could not be read")
        return about


def _copy_of(about: dict[str, Any]) -> object:
    """Where the smaller copy of a large picture lies, which Slack makes by itself: models take none
    that is much larger. None: the file itself is to be fetched."""
    size, kind = about.get("size"), about.get("mimetype")
    is_picture = isinstance(kind, str) and kind.startswith("image/")
    if not is_picture or not isinstance(size, int) or size <= PICTURE_BYTES_MAX:
        return None
    return about.get("thumb_1024") or None


def is_ours(url: str, base_url: str) -> bool:
    """Whether the token may be sent there: the API's own origin, or Slack's host of files."""
    try:
        origins = [_origin(one) for one in (url, base_url, FILES_ORIGIN)]
        names_nobody = urlsplit(url).username is None
    except ValueError:
        return False
    return names_nobody and origins[0] in origins[1:]


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return (parts.scheme, parts.hostname, parts.port)
