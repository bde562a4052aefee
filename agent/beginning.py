"""The step `begin` of a turn: fixes the prompt and the history that the turn builds on."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import structlog

from agent.history import estimate_tokens, window
from agent.library import Library
from agent.messages import TurnInput
from agent.ports import Clock, Conversations, Json, StoredEntry, TurnContext
from agent.prompt import Prompt, assemble, demo_prompt
from agent.request import ModelTraits
from agent.scene import Scene
from agent.tools.toolbox import Toolbox
from agent.transcript import Context
from agent.version import VERSION

log = structlog.get_logger()

WINDOW_SHARE_MAX = 0.6
"""Share of a model's window that history may take; the rest is prompt, tools and answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """Settings of a prompt. `language` empty follows the person; `host_zone` is an IANA name."""

    language: str = ""
    turn_layers: str = "user"
    bootstrap_chars_max: int = 20_000
    host_zone: str = "UTC"
    messages_max: int = 50
    tokens_max: int = 24_000
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()


class Beginning:
    """Assembles the prompt once; its output names all of it by ids and digests."""

    def __init__(
        self,
        conversations: Conversations,
        library: Library,
        toolbox: Toolbox,
        *,
        traits: ModelTraits,
        clock: Clock,
        options: PromptOptions,
    ) -> None:
        self._conversations = conversations
        self._library = library
        self._toolbox = toolbox
        self._traits = traits
        self._clock = clock
        self._options = options

    async def __call__(self, ctx: TurnContext, payload: Json) -> Json:
        """The output is read back by `agent.loop.Begun`."""
        turn = TurnInput.from_json(payload)
        history = await self._conversations.history(turn.conversation)
        sent_from = self._window(history.entries)
        sent = [stored for stored in history.entries if stored.id >= (sent_from or 0)]
        prompt = self._prompt(turn, sent)
        await self._conversations.keep_text(prompt.digest, prompt.system)
        tools = self._tools(turn)
        log.info(
            "prompt",
            kind="chat",
            layers=[layer.name for layer in prompt.layers],
            chars=len(prompt.system) + len(prompt.context),
            tokens=estimate_tokens(prompt.system) + estimate_tokens(prompt.context),
            history=len(sent),
            step=sent_from is not None,
        )
        return {
            "upto": history.entries[-1].id if history.entries else 0,
            "sent_from": sent_from,
            "notes": [list(note) for note in history.notes],
            "system": prompt.digest,
            "context": prompt.context,
            "tools": tools,
        }

    def _window(self, entries: tuple[StoredEntry, ...]) -> int | None:
        options = self._options
        return window(
            entries,
            messages_max=options.messages_max,
            tokens_max=min(options.tokens_max, int(self._traits.window * WINDOW_SHARE_MAX)),
            count=estimate_tokens,
        )

    def _prompt(self, turn: TurnInput, sent: list[StoredEntry]) -> Prompt:
        scene = self._scene(turn)
        if self._traits.demo:
            return demo_prompt(scene)
        contexts = [stored.entry.text for stored in sent if isinstance(stored.entry, Context)]
        return assemble(scene, sent_contexts=contexts, turn_layers_in=self._options.turn_layers)

    def _scene(self, turn: TurnInput) -> Scene:
        zone = turn.time_zone or self._options.host_zone
        base, source = self._library.base()
        return Scene(
            now=self._clock.now().astimezone(ZoneInfo(zone)),
            zone=zone,
            turn=turn,
            base=base,
            base_source=source,
            texts=self._library.texts(),
            bootstrap=self._library.bootstrap(turn),
            bootstrap_chars_max=self._options.bootstrap_chars_max,
            fixed_language=self._options.language,
            version=VERSION,
            system=platform.system(),
        )

    def _tools(self, turn: TurnInput) -> list[str]:
        if not self._traits.tools:
            return []
        options = self._options
        specs = self._toolbox.specs(options.allowed_tools, options.denied_tools, turn.role)
        return [spec.name for spec in specs]
