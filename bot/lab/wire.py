"""Arguments of a request to a stand-in, as they come: query, form, JSON, or parts with files."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from aiohttp.web_request import BaseRequest, FileField

NOT_JSON = ""
"""The name of an argument that says that the body was to be JSON, and is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came with a request."""

    name: str
    mime_type: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.name} ({len(self.data)} bytes)"


class RequestParams(dict[str, Any]):
    """Arguments by name: text from a form, anything from JSON."""

    def text(self, name: str) -> str:
        value = self.get(name)
        return "" if value is None else value if isinstance(value, str) else str(value)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"1", "true", "yes"}

    def nested(self, name: str, wrong: Exception) -> Any:
        """Return a JSON value, given as such or as text; raise `wrong` where it cannot be read."""
        value = self.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise wrong from None

    async def receive(self, request: BaseRequest) -> None:
        """Take in what a request brings."""
        self.update(request.query)
        if request.content_type == "multipart/form-data":
            for name, value in (await request.post()).items():
                self[name] = value
                if isinstance(value, FileField):
                    kind = value.content_type or "application/octet-stream"
                    data = value.file.read()
                    self[name] = Upload(name=value.filename, mime_type=kind, data=data)
            return
        body = await request.read()
        if request.content_type != "application/json":
            self.update(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
            return
        try:
            self.update(json.loads(body) if body else {})
        except (TypeError, ValueError):
            self[NOT_JSON] = True
