"""A model hub on loopback: files, their list, ranges, redirects, and lines that break."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.agent.web.sites import site


@dataclass(slots=True)
class Hub:
    """`files` by repository and path. What may go wrong:

    - `cut_after`: a body ends after so many bytes, as often as `cuts` says
    - `etag`: changes are changes of the file; `ranges` False: Range is not understood
    - `says_size`, `says_sha`: what the list says instead of the truth
    - `status`: every answer has it; `location`: every file leads there
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    base_url: str = ""
    cut_after: int = 0
    cuts: int = 0
    etag: str = '"one"'
    ranges: bool = True
    says_size: int | None = None
    says_sha: str | None = None
    status: int = 200
    location: str = ""
    hold: asyncio.Event | None = None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def ranges_asked(self) -> list[str]:
        """The Range of each request for a file, in order; empty for a whole one."""
        return [headers.get("Range", "") for path, headers in self.asked if "/resolve/" in path]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, dict(request.headers)))
        if self.status != 200:
            return web.Response(status=self.status)
        parts = request.path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._list("/".join(parts[2:4]))
        if self.location and parts[0] != "elsewhere":
            return web.Response(status=302, headers={"Location": self.location})
        if parts[0] == "elsewhere":
            parts = parts[1:]
        content = self.files.get("/".join(parts[:2]), {}).get("/".join(parts[4:]))
        if content is None:
            return web.Response(status=404)
        return await self._send(request, content)

    def _list(self, repository: str) -> web.Response:
        if repository not in self.files:
            return web.Response(status=401)
        listed = [{"type": "directory", "path": "sub", "size": 0}]
        for path, content in self.files[repository].items():
            size = len(content) if self.says_size is None else self.says_size
            sha256 = self.says_sha or hashlib.sha256(content).hexdigest()
            listed.append(
                {"type": "file", "path": path, "size": size}
                | {"lfs": {"oid": sha256, "size": size}}
            )
        return web.Response(text=json.dumps(listed), content_type="application/json")

    async def _send(self, request: web.Request, content: bytes) -> web.StreamResponse:
        start, status = 0, 200
        headers = {"ETag": self.etag}
        wanted = request.headers.get("Range", "")
        same = request.headers.get("If-Range", self.etag) == self.etag
        if wanted and self.ranges and same:
            start, status = int(wanted.removeprefix("bytes=").rstrip("-")), 206
            if start >= len(content):
                return web.Response(status=416)
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        answer = web.StreamResponse(status=status, headers=headers)
        answer.content_length = len(body)
        await answer.prepare(request)
        if self.hold is not None:
            await answer.write(body[: len(body) // 2])
            await self.hold.wait()
            body = body[len(body) // 2 :]
        if self.cut_after and self.cuts > 0:
            self.cuts -= 1
            await answer.write(body[: self.cut_after])
            assert request.transport is not None
            request.transport.close()
            return answer
        await answer.write(body)
        return answer


@asynccontextmanager
async def serving(**files: dict[str, bytes]) -> AsyncIterator[Hub]:
    """A hub that runs; `files` by owner, each with `model/path`."""
    hub = Hub()
    for owner, paths in files.items():
        for name, content in paths.items():
            model, _, path = name.partition("/")
            hub.files.setdefault(f"{owner}/{model}", {})[path] = content
    async with site(hub.serve) as served:
        hub.base_url = served.url
        yield hub
