"""The parameters of a Web API request, from its query, form or JSON body.

Called by the Slack stand-in; every method reads its arguments here.
"""

import json
from typing import Any
from urllib.parse import parse_qsl

from aiohttp.web_request import BaseRequest

from bot.lab.slack_state import SlackRefusal


class SlackParams(dict[str, Any]):
    """The arguments as received: text from a form or query, anything from JSON."""

    def text(self, name: str) -> str:
        value = self.get(name)
        return "" if value is None else value if isinstance(value, str) else str(value)

    def needed(self, name: str) -> str:
        """This text; refuses the request in Slack's way when it is missing."""
        value = self.text(name)
        if not value:
            raise SlackRefusal("invalid_arguments", messages=[f"missing required field: {name}"])
        return value

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.get(name, default))
        except (TypeError, ValueError):
            raise SlackRefusal("invalid_arguments", messages=[f"invalid {name}"]) from None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"1", "true"}

    def nested(self, name: str, wrong: str) -> Any:
        """A JSON value, given as such or as text; refuses with `wrong` what cannot be read."""
        value = self.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise SlackRefusal(wrong) from None

    def objects(self, name: str) -> list[dict[str, Any]]:
        """A list of JSON objects that has to be there."""
        value = self.nested(name, "invalid_arguments")
        whole = isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if not whole or not value:
            raise SlackRefusal("invalid_arguments", messages=[f"missing required field: {name}"])
        return list(value)


async def read_params(request: BaseRequest) -> tuple[SlackParams, str]:
    """The arguments, and the token from wherever Slack takes one; JSON bodies carry none."""
    params = SlackParams(request.query)
    kind = request.content_type
    if kind == "application/json":
        token = ""
        params.update(_object(await request.read()))
    elif kind == "multipart/form-data":
        params.update({k: v for k, v in (await request.post()).items() if isinstance(v, str)})
        token = params.text("token")
    else:
        body = (await request.read()).decode(errors="replace")
        params.update(parse_qsl(body, keep_blank_values=True))
        token = params.text("token")
    params.pop("token", None)
    header = request.headers.get("Authorization", "")
    if header.startswith("Bearer "):
        token = header.removeprefix("Bearer ").strip()
    return params, token


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body) if body else {}
    except ValueError:
        found = None
    # Remembered under a name that no method has, and refused when the method is called.
    return found if isinstance(found, dict) else {"": "invalid"}
