"""A stand-in for Slack: in a test's event loop, or as a process of its own.

`async with FakeSlack() as slack` for tests; `python -m bot.lab.slack` for black boxes. People act
through `post`, `edit`, `command`, `press`; what they then see is `chat`, and `shown` as text.
Events go to the app's sockets, or to its address after `deliver_to`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest

from bot.lab.faults import FaultAction, answer
from bot.lab.server import StandInAnswer, common_options, json_answer, serve_until_interrupted
from bot.lab.slack_http import HttpOut
from bot.lab.slack_params import read_params
from bot.lab.slack_people import PeopledSlack
from bot.lab.slack_state import Json, SlackRefusal

TOKEN = "xoxb-lab"  # noqa: S105 - the stand-in's own, known to all
APP_TOKEN = "xapp-lab"  # noqa: S105
SIGNING_SECRET = "lab-signing-secret"  # noqa: S105
_API = re.compile(r"/api/(?P<method>[\w.]+)/?")
_UPLOAD = re.compile(r"/upload/v1/(?P<file>\w+)")
_SIGN_IN = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCall(FaultAction):
    """Why a request had no effect, in Slack's word; so the log says it, and counts it so."""

    @property
    def instead(self) -> bool:
        return True


def refusal(error: str, *, after: bool = False, **more: Any) -> FaultAction:
    """A fault: the Web API refuses with this error, in its own shape."""
    return answer(200, SlackRefusal(error, **more).payload, after=after)


def flood(retry_after: int) -> FaultAction:
    """A fault: 429 with `Retry-After`."""
    body = SlackRefusal("ratelimited").payload
    return answer(429, body, headers={"Retry-After": str(retry_after)})


class FakeSlack(PeopledSlack):
    """One workspace with one app: Web API, Socket Mode, and events over HTTP."""

    def __init__(
        self,
        token: str = TOKEN,
        app_token: str = APP_TOKEN,
        *,
        signing_secret: str = SIGNING_SECRET,
        ack_s: float | None = None,
        retry_scale: float = 1.0,
        **more: Any,
    ) -> None:
        super().__init__(token, app_token, **more)
        self.signing_secret = signing_secret
        self._http: list[HttpOut] = []
        self._deliveries.retry_scale = retry_scale
        if ack_s is not None:
            self._deliveries.ack_s = ack_s

    async def __aenter__(self) -> "FakeSlack":
        await super().__aenter__()
        self._api.files.base_url = self.base_url
        return self

    async def __aexit__(self, *error: object) -> None:
        self._stopping.set()
        self.release()
        await self._close_ways()
        for http in self._http:
            await http.close()
        await super().__aexit__(*error)

    @property
    def api_url(self) -> str:
        """The root of the Web API; `https://slack.com/api/` in the real one."""
        return f"{self.base_url}/api/"

    async def deliver_to(self, url: str | None) -> bool:
        """Send events, commands and clicks to this address from now on; None: to the sockets.

        The address is verified first, as when one enters it in the app's settings; says whether it
        gave the challenge back, without which nothing changes.
        """
        if url is None:
            self._deliveries.way = self._sockets
            return True
        http = HttpOut(url, secret=self.signing_secret, wall=self._workspace.wall)
        self._http.append(http)
        verified = await http.verify(within_s=self._deliveries.ack_s)
        if verified:
            self._deliveries.way = http
        return verified

    # The server ---------------------------------------------------------------------------------

    def controls(self) -> dict[str, Callable[..., Any]]:
        names = (
            "add_user add_channel post bot_post edit delete react unreact invite leave open_home"
            " start_assistant change_context command press submit close_view stop_stream event"
            " chat thread shown ephemeral sent previewed direct home views status prompts title"
            " deliveries delivery pending lost redeliver settled sockets refresh cut deliver_to"
        )
        ours: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in names.split()}
        return super().controls() | ours | {"set": self._set}

    async def serve(self, request: BaseRequest) -> web.StreamResponse:
        path = request.path
        if match := _API.fullmatch(path):
            return await self._method(request, match["method"])
        if path == "/link/":
            return await self._link(request)
        if match := _UPLOAD.fullmatch(path):
            return await self._upload(request, match["file"])
        if path.startswith("/files-pri/"):
            return await self._download(request)
        if path in self._workspace.response_urls:
            return await self._response_url(request)
        if path == "/signin":
            return web.Response(text=_SIGN_IN, content_type="text/html")
        return web.Response(status=404, text="not found")

    async def _method(self, request: BaseRequest, method: str) -> web.StreamResponse:
        params, token = await read_params(request)
        headers = self._api.scope_headers(method, token)

        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                payload = self._api.call(method, params, token)
            except SlackRefusal as wrong:
                return _refused(wrong, headers)
            if request.content_type == "application/json" and request.charset is None:
                _warn(payload, "missing_charset")
            return json_answer(payload, headers=headers)

        return await self.perform(request, method, params, effect)

    async def _link(self, request: BaseRequest) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        entry = self._note("link", {"ticket": ticket})
        fault = self._faults.take("link", entry.params)
        if fault is not None:
            entry.fault = fault.kind
            if fault.kind == "hold":
                await self.hold(fault.seconds)
            elif fault.instead:
                return await self._send(request, entry, await self._alter(fault, StandInAnswer()))
        if ticket not in self._sockets.tickets:
            return await self._send(
                request, entry, StandInAnswer(status=409, shown="no such ticket")
            )
        self._sockets.tickets.discard(ticket)
        entry.applied, entry.status = True, 101
        return await self._sockets.serve(request)

    async def _upload(self, request: BaseRequest, file_id: str) -> web.StreamResponse:
        data = await _uploaded(request)

        async def effect(_: FaultAction | None) -> StandInAnswer:
            taken = self._api.files.receive(file_id, data)
            text = f"OK - {len(data)}" if taken else "no such upload, or another length"
            headers = {"Content-Type": "text/plain"}
            return StandInAnswer(
                status=200 if taken else 400, body=text.encode(), headers=headers, shown=text
            )

        return await self.perform(request, "upload", {"file": file_id, "bytes": len(data)}, effect)

    async def _download(self, request: BaseRequest) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")

        async def effect(_: FaultAction | None) -> StandInAnswer:
            file = self._api.files.by_path(request.path)
            allowed = token == self._tokens.bot and "files:read" in self.rules.bot_scopes
            if not allowed:
                # Slack sends whoever is not signed in to a page, with status 200 in the end.
                to = {"Location": f"{self.base_url}/signin?redir={request.path}"}
                return StandInAnswer(status=302, headers=to, shown="to the sign-in page")
            if file is None or file.data is None:
                return json_answer(SlackRefusal("file_not_found").payload, status=404)
            headers = {"Content-Type": file.mime_type}
            return StandInAnswer(body=file.data, headers=headers, shown=f"{len(file.data)} bytes")

        return await self.perform(request, "file", {"path": request.path}, effect)

    async def _response_url(self, request: BaseRequest) -> web.StreamResponse:
        params, _ = await read_params(request)

        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                self._answers.later(request.path, params)
            except SlackRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)
            return StandInAnswer(body=b"ok", headers={"Content-Type": "text/plain"}, shown="ok")

        return await self.perform(request, "response_url", params, effect)

    def _set(
        self,
        *,
        ack_s: float | None = None,
        retry_scale: float | None = None,
        retries_max: int | None = None,
        connection_s: float | None = None,
        **rules: Any,
    ) -> None:
        """Settings over HTTP: those of deliveries and sockets, and all of `Rules` by name."""
        for name, value in (
            ("ack_s", ack_s),
            ("retry_scale", retry_scale),
            ("retries_max", retries_max),
        ):
            if value is not None:
                setattr(self._deliveries, name, value)
        if connection_s is not None:
            self.connection_s = connection_s
        self.rules.change(**rules)


def _refused(wrong: SlackRefusal, headers: dict[str, str]) -> StandInAnswer:
    if wrong.retry_after is not None:
        headers = headers | {"Retry-After": str(wrong.retry_after)}
    spoken = json_answer(wrong.payload, status=wrong.status, headers=headers)
    return StandInAnswer(
        status=spoken.status,
        body=spoken.body,
        headers=spoken.headers,
        shown=spoken.shown,
        fault=RefusedCall(kind=wrong.error),
    )


def _warn(payload: Json, warning: str) -> None:
    metadata = payload.setdefault("response_metadata", {})
    warnings = metadata.setdefault("warnings", [])
    warnings.append(warning)
    payload["warning"] = ",".join(warnings)


async def _uploaded(request: BaseRequest) -> bytes:
    if request.content_type != "multipart/form-data":
        return await request.read()
    for value in (await request.post()).values():
        if isinstance(value, web.FileField):
            return value.file.read()
    return b""


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("A stand-in for Slack on a loopback port.")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--app-token", default=APP_TOKEN)
    parser.add_argument("--signing-secret", default=SIGNING_SECRET)
    parser.add_argument("--limits", action="store_true", help="enforce the rate limits")
    parser.add_argument("--retry-scale", type=float, default=1.0, help="0.01: retries come sooner")
    given = parser.parse_args()

    def make() -> FakeSlack:
        slack = FakeSlack(
            given.token,
            given.app_token,
            signing_secret=given.signing_secret,
            retry_scale=given.retry_scale,
            host=given.host,
            port=given.port,
            log_cap=given.log_cap,
        )
        slack.rules.limits = given.limits
        return slack

    serve_until_interrupted(make)


if __name__ == "__main__":
    main()
