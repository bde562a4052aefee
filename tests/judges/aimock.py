"""aimock (npm, MIT), a stand-in for providers that others wrote, as a process on loopback.

It knows nothing of our clients, so it says whether they speak as the providers expect. Node runs
it from where `make judges` installs it, with the version and hash of `package-lock.json`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import httpx

PROGRAM = Path(sys.prefix, "judges", "node_modules", "@copilotkit", "aimock", "dist", "cli.cjs")
"""The CommonJS build: it runs on Node 18 too, which Debian 12 has."""

STRICT = "--strict"
"""A request that nobody told it to answer is refused with a 503. Wants a script that is not
empty, and would not ask the server that it is to record."""

Answer = dict[str, Any]


def missing() -> str:
    """Why it cannot run here; empty when it can."""
    if shutil.which("node") is None:
        return "there is no Node: install nodejs and npm, then say make judges"
    if not PROGRAM.is_file():
        return "aimock is not installed: say make judges"
    return ""


class Aimock:
    """One process of it."""

    def __init__(self, script: Path, *options: str) -> None:
        """`script` is a file or a folder with answers."""
        command = ["node", str(PROGRAM), "--port", "0", "--fixtures", str(script)]
        self._process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.url = self._announced()
        self._http = httpx.Client(base_url=f"{self.url}/__aimock", trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def api_base(self) -> str:
        """Where OpenAI's language is spoken."""
        return f"{self.url}/v1"

    def answers(self, *answers: Answer) -> None:
        """Adds to the script; the first that matches a request answers it."""
        self._post("fixtures", {"fixtures": list(answers)})

    def fails_next(self, status: int, message: str, *, code: str = "") -> None:
        """The next request gets this error, once."""
        body = {"message": message, "type": "error", **({"code": code} if code else {})}
        self._post("error", {"status": status, "body": body})

    def misbehaves(self, **rates: float) -> None:
        """From now on, by its chaos: `dropRate`, `malformedRate`, `disconnectRate` … ; with none
        it is well again."""
        self._post("chaos", rates)

    def asked(self) -> list[dict[str, Any]]:
        """Its journal: every request, and how it was answered."""
        found = self._http.get("journal", params={"limit": 1000})
        found.raise_for_status()
        journal: list[dict[str, Any]] = found.json()
        return journal

    def bodies(self) -> list[dict[str, Any]]:
        """What the requests held."""
        return [entry["body"] for entry in self.asked()]

    def reset(self) -> None:
        """Forgets script, faults and journal."""
        self._post("reset", {})

    def close(self) -> None:
        """Ends the process."""
        self._http.close()
        self._process.terminate()
        self._process.communicate(timeout=10)

    def _announced(self) -> str:
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            if found := re.search(r"listening on (http://127\.0\.0\.1:\d+)", line):
                return found[1]
            said.append(line)
        self._process.communicate(timeout=10)
        raise AssertionError(f"aimock did not start:\n{''.join(said)}")

    def _post(self, route: str, body: dict[str, Any]) -> None:
        answer = self._http.post(route, json=body)
        assert answer.status_code == 200, (route, body, answer.text)


def script(folder: Path, *answers: Answer) -> Path:
    """A file with answers, as aimock starts with."""
    file = folder / "script.json"
    file.write_text(json.dumps({"fixtures": list(answers)}), encoding="utf-8")
    return file


def says(content: str, *, to: str = "", **more: Any) -> Answer:
    """An answer in words, to whoever's last message holds `to`. `more` are aimock's own fields;
    what stands in `match` must hold as well."""
    asked = {"endpoint": "chat", **({"userMessage": to} if to else {}), **more.pop("match", {})}
    return {"match": asked, "response": {"content": content}, **more}


def calls(*called: tuple[str, dict[str, Any]], to: str) -> Answer:
    """An answer that calls tools, until there are results. Their ids are call_1, call_2 …"""
    tools = [
        {"id": f"call_{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(called, start=1)
    ]
    return {
        "match": {"endpoint": "chat", "userMessage": to, "hasToolResult": False},
        "response": {"toolCalls": tools},
    }
