"""A stand-in for Slack: in a test's event loop, or as a process of its own.

`async with FakeSlack() as slack` for tests; `python -m bot.lab.slack` for black boxes. People act
through `post`, `edit`, `command`, `press`; what they then see is `chat`, and `shown` as text.
Events go to the app's sockets, or to its address after `deliver_to`.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest

from bot.lab.faults import FaultAction, answer
from bot.lab.server import StandInAnswer, common_options, json_answer, serve_until_interrupted
from bot.lab.slack_delivery import HttpOut
from bot.lab.slack_people import PeopledSlack
from bot.lab.slack_state import SlackParams, SlackRefusal

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
    """The server of a workspace: Web API, Socket Mode, and events over HTTP."""

    def __init__(
        self,
        token: str = TOKEN,
        app_token: str = APP_TOKEN,
        *,
        signing_secret: str = SIGNING_SECRET,
        **more: Any,
    ) -> None:
        """`more` is what `PeopledSlack` takes, and the rules of `SlackRules` by name."""
        super().__init__(token, app_token, **more)
        self._token = token
        self._signing_secret = signing_secret

    async def __aexit__(self, *error: object) -> None:
        self._stopping.set()
        self.release()
        await self._deliveries.close()
        await self._sockets.close()
        # Handlers of closed sockets end one turn of the loop later.
        await asyncio.sleep(0)
        for http in self._http:
            await http.close()
        await super().__aexit__(*error)

    @property
    def api_url(self) -> str:
        """The root of the Web API; `https://slack.com/api/` in the real one."""
        return f"{self.base_url}/api/"

    async def deliver_to(self, url: str | None) -> bool:
        """Send events, commands and clicks to this address from now on; None: to the sockets.

        The address is verified first, as when one enters it in the app's settings; say whether it
        gave the challenge back, without which nothing changes.
        """
        if url is None:
            self._by_http = False
            return True
        http = HttpOut(url, secret=self._signing_secret)
        if not await http.verify(within_s=self.rules.ack_s):
            await http.close()
            return False
        self._http.append(http)
        self._by_http = True
        return True

    # The server ---------------------------------------------------------------------------------

    def controls(self) -> dict[str, Callable[..., Any]]:
        return {"set": self.rules.change}

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
        params = SlackParams()
        await params.receive(request)
        headers = self._api.scope_headers(params.token)

        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                return json_answer(self._api.call(method, params), headers=headers)
            except SlackRefusal as wrong:
                more = {"Retry-After": str(wrong.retry_after)} if wrong.retry_after else {}
                said = json_answer(wrong.payload, status=wrong.status, headers=headers | more)
                return replace(said, fault=RefusedCall(kind=wrong.error))

        return await self.perform(request, method, params, effect)

    async def _link(self, request: BaseRequest) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")

        async def effect(_: FaultAction | None) -> StandInAnswer:
            if ticket not in self._sockets.tickets:
                return StandInAnswer(status=409, shown="no such ticket")
            self._sockets.tickets.discard(ticket)
            return StandInAnswer(status=101, upgrade=self._sockets.serve)

        return await self.perform(request, "link", {"ticket": ticket}, effect)

    async def _upload(self, request: BaseRequest, file_id: str) -> web.StreamResponse:
        data = await request.read()

        async def effect(_: FaultAction | None) -> StandInAnswer:
            file = self._workspace.files.get(file_id)
            if file is None or file.data is not None or len(data) != file.length:
                return StandInAnswer(status=400, shown="no such upload, or another length")
            file.data = data
            return StandInAnswer(body=b"OK", headers={"Content-Type": "text/plain"}, shown="OK")

        return await self.perform(request, "upload", {"file": file_id, "bytes": len(data)}, effect)

    async def _download(self, request: BaseRequest) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")

        async def effect(_: FaultAction | None) -> StandInAnswer:
            if token != self._token or "files:read" not in self.rules.bot_scopes:
                # Slack sends whoever is not signed in to a page, with status 200 in the end.
                to = {"Location": f"{self.base_url}/signin?redir={request.path}"}
                return StandInAnswer(status=302, headers=to, shown="to the sign-in page")
            for file in self._workspace.files.values():
                if file.path == request.path and file.data is not None:
                    kind, shown = {"Content-Type": file.mime_type}, f"{len(file.data)} bytes"
                    return StandInAnswer(body=file.data, headers=kind, shown=shown)
            return json_answer(SlackRefusal("file_not_found").payload, status=404)

        return await self.perform(request, "file", {"path": request.path}, effect)

    async def _response_url(self, request: BaseRequest) -> web.StreamResponse:
        params = SlackParams()
        await params.receive(request)

        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                self._api.respond(request.path, params)
            except SlackRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)
            return StandInAnswer(body=b"ok", headers={"Content-Type": "text/plain"}, shown="ok")

        return await self.perform(request, "response_url", params, effect)


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("A stand-in for Slack on a loopback port.")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--app-token", default=APP_TOKEN)
    parser.add_argument("--signing-secret", default=SIGNING_SECRET)
    parser.add_argument("--limits", action="store_true", help="enforce the rate limits")
    parser.add_argument("--retry-scale", type=float, default=1.0, help="0.01: retries come sooner")
    given = vars(parser.parse_args())
    serve_until_interrupted(lambda: FakeSlack(**given))


if __name__ == "__main__":
    main()
