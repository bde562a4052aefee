"""The floors: bots that do the same requests with no product around them.

`python -m tests.bench.floors raw|ptb …`; the benchmark runs them beside Hearthbot. Both keep a
conversation in memory, stream the model's answer, run one tool, and send the reply. Nothing is
stored, retried, limited, rendered or logged: what is above them is the price of the product.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

Json = dict[str, Any]
MESSAGES_MAX = 50
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a text file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}


class Answerer:
    """The model, and what was said in each chat."""

    def __init__(self, session: aiohttp.ClientSession, model_url: str, folder: Path) -> None:
        self._session = session
        self._url = f"{model_url}/v1/chat/completions"
        self._folder = folder
        self._said: dict[int, list[Json]] = defaultdict(list)

    async def answer(self, chat: int, text: str) -> str:
        """One turn."""
        said = self._said[chat]
        said.append({"role": "user", "content": text})
        while True:
            message = await self._ask(said[-MESSAGES_MAX:])
            said.append(message)
            if "tool_calls" not in message:
                return str(message["content"])
            said.extend(self._result(call) for call in message["tool_calls"])

    async def _ask(self, messages: list[Json]) -> Json:
        body = {"model": "lab-model", "messages": messages, "tools": [TOOL], "stream": True}
        async with self._session.post(self._url, json=body) as response:
            return _joined([line async for line in response.content])

    def _result(self, call: Json) -> Json:
        path = json.loads(call["function"]["arguments"])["path"]
        content = (self._folder / path).read_text()
        return {"role": "tool", "tool_call_id": call["id"], "content": content}


def _joined(lines: list[bytes]) -> Json:
    text: list[str] = []
    calls: list[Json] = []
    for line in lines:
        data = line.removeprefix(b"data: ").strip()
        if not data or data == b"[DONE]":
            continue
        for choice in json.loads(data)["choices"]:
            delta = choice["delta"]
            text.append(delta.get("content") or "")
            for piece in delta.get("tool_calls") or ():
                _add_piece(calls, piece)
    message: Json = {"role": "assistant", "content": "".join(text)}
    return {**message, "tool_calls": calls} if calls else message


def _add_piece(calls: list[Json], piece: Json) -> None:
    if piece["index"] == len(calls):
        calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
    else:
        calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


@asynccontextmanager
async def _session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield session


# --- raw: aiohttp and nothing else ----------------------------------------------------------------


async def raw(telegram_root: str, model_url: str, folder: Path) -> None:
    """Polls, answers, sends."""
    async with _session() as session, asyncio.TaskGroup() as group:
        answerer = Answerer(session, model_url, folder)

        async def turn(message: Json) -> None:
            chat = message["chat"]["id"]
            text = await answerer.answer(chat, message["text"])
            reply = {"chat_id": chat, "text": text}
            async with session.post(f"{telegram_root}/sendMessage", json=reply) as response:
                await response.read()

        offset = 0
        while True:
            asked = {"offset": offset, "timeout": 30, "allowed_updates": ["message"]}
            async with session.post(f"{telegram_root}/getUpdates", json=asked) as response:
                updates = (await response.json())["result"]
            for update in updates:
                offset = update["update_id"] + 1
                group.create_task(turn(update["message"]))


# --- ptb: python-telegram-bot, as its documentation has it ----------------------------------------


def ptb(base_url: str, token: str, model_url: str, folder: Path) -> None:
    """The library's own Application with one handler."""
    from telegram import Update
    from telegram.ext import Application, ApplicationBuilder, MessageHandler, filters

    answerers: list[Answerer] = []
    sessions: list[aiohttp.ClientSession] = []

    async def begin(_: Any) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        sessions.append(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        )
        answerers.append(Answerer(sessions[0], model_url, folder))

    async def end(_: Any) -> None:
        await sessions[0].close()

    async def turn(update: Update, _: Any) -> None:
        message = update.message
        if message is not None and message.text is not None:
            text = await answerers[0].answer(message.chat_id, message.text)
            await message.get_bot().send_message(message.chat_id, text)

    builder = ApplicationBuilder().token(token).base_url(f"{base_url}/bot")
    builder = builder.concurrent_updates(256).post_init(begin).post_shutdown(end)
    application: Application[Any, Any, Any, Any, Any, Any] = builder.build()
    application.add_handler(MessageHandler(filters.TEXT, turn))
    application.run_polling(timeout=30, allowed_updates=["message"])


def main() -> None:
    """Run one floor as a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("raw", "ptb"))
    parser.add_argument("--telegram", required=True, help="root of the Bot API")
    parser.add_argument("--token", required=True)
    parser.add_argument("--model", required=True, help="root of the model's server, without /v1")
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    if given.which == "ptb":
        ptb(given.telegram, given.token, given.model, given.folder)
        return
    with suppress(KeyboardInterrupt):
        asyncio.run(raw(f"{given.telegram}/bot{given.token}", given.model, given.folder))


if __name__ == "__main__":
    main()
