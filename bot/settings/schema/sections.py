"""The sections of the settings about memory, the clock, attachments and agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from agent.turn.agents import Binding
from bot.settings.schema.values import AgentName, at_least_or_none, matching
from memory.records.messages import DEFAULT_AGENT
from memory.records.section import ExtractionSettings, Names, Section, Text


class MemorySettings(Section):
    """What is remembered of people, beyond the conversation."""

    recalled: int = Field(
        default=5, ge=0, le=20, description="Facts that a prompt shows, those that fit best."
    )
    embeddings: bool = Field(
        default=True,
        description="Find by meaning too, not by words alone (100 MB of memory once used).",
    )
    insights: bool = Field(
        default=True,
        description="After a turn with tools, or a long message, note what helps in the next half "
        "hour: costs one small model call.",
    )
    insights_minutes: float = Field(
        default=30.0, gt=0, description="How long such notes are used, minutes."
    )
    documents_unused_days: int = Field(
        default=30, ge=1, description="Documents unused for so long are offered for removal."
    )
    extraction: ExtractionSettings = ExtractionSettings()


# --- jobs and the heartbeat -----------------------------------------------------------------------
#
# The sections of the settings about what happens by the clock: jobs and the heartbeat.

_Check = Annotated[
    Text,
    matching(
        r"(?:file|tool|command):\s*\S.{0,400}|url:\s*https?://\S{1,400}",
        "allowed are file:PATH, url:https://…, tool:NAME, command:COMMAND",
    ),
]
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"


class SchedulerSettings(Section):
    """Reminders and other jobs."""

    daily_max: int = Field(
        default=12,
        ge=0,
        description="Unasked messages a day to one person; what is more becomes a digest. What a "
        "person set up itself counts toward no limit.",
    )
    repeat_hours: float = Field(
        default=24.0, ge=0, description="Hours in which the same finding is not told again."
    )


class HeartbeatSettings(Section):
    """A regular look at workspace/HEARTBEAT.md. An empty list costs nothing."""

    enabled: bool = Field(default=True, description="Whether there is one.")
    every_minutes: Annotated[int, at_least_or_none(5, none="off")] = Field(
        default=30, ge=0, description="Minutes between two looks, 5 at least. 0: off."
    )
    active_hours: Annotated[
        str,
        matching(f"({_CLOCK}-{_CLOCK})?", "allowed: two times of the day, such as 08:00-22:00"),
    ] = Field(
        default="",
        description="Only between these times of the owner's day, such as 08:00-22:00. Empty: "
        "always.",
    )
    deliver_to: str = Field(
        default="",
        description="The chat that hears of it, such as telegram:42. Empty: the owner's private "
        "chat.",
    )
    checks: Annotated[tuple[_Check, ...], Field(strict=False)] = Field(
        default=(),
        description="Cheap looks before a model is asked: file:PATH or url:ADDRESS (has it "
        "changed?), tool:NAME (does it say anything new?), command:COMMAND (does it end with 0?). "
        'Such as ["file:files/inbox.md"]. Empty: the list alone decides.',
    )


# --- attachments ----------------------------------------------------------------------------------
#
# The section of the settings about files that come with messages.


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


# --- agents ---------------------------------------------------------------------------------------
#
# Who agents are, what they may do, and which chats each of them takes.

_BUDGET = re.compile(
    r"\s*(?P<amount>\d{1,9}(?:\.\d{1,4})?)\s*(?P<unit>usd|tokens)\s+a\s+(?P<period>turn|day|month)\s*"
)


def budget_of(text: str) -> tuple[float, Literal["usd", "tokens"], str]:
    """Amount, unit and period of a budget in words. Raises ValueError where it is none."""
    found = _BUDGET.fullmatch(text)
    if found is None or not float(found["amount"]):
        raise ValueError('allowed are such as "2 usd a day", "50000 tokens a turn"')
    amount = float(found["amount"])
    if found["unit"] == "usd":
        return amount, "usd", found["period"]
    if amount != int(amount):
        raise ValueError("tokens are counted in whole numbers")
    return amount, "tokens", found["period"]


_Budget = Annotated[Text, AfterValidator(lambda text: text if budget_of(text) else "")]


class AgentSettings(Section):
    """The assistant itself. The agent named default always exists."""

    system_prompt: str = Field(
        default="",
        description="What the assistant is, in place of prompts/system.md.",
        examples=["You help with work, briefly."],
    )
    system_prompt_file: str = Field(
        default="",
        description="The same from a file; a relative path starts in the workspace.",
        examples=[""],
    )
    persona_dir: str = Field(
        default="",
        description="Folder that holds instructions.md. Empty: agents/NAME in the workspace, such "
        "as agents/default.",
        examples=[""],
    )
    model: str = Field(
        default="",
        description="The model that answers for it. Empty: llm.model.",
        examples=["openai/gpt-4.1"],
    )
    fallbacks: Names = Field(
        default=(),
        description="Models to ask while that one cannot answer. Empty: llm.fallbacks.",
        examples=[[]],
    )
    temperature: float = Field(
        default=0.4,
        ge=0,
        le=2,
        description="How freely the model chooses its words.",
        examples=[0.4],
    )
    max_steps: int = Field(
        default=8, ge=1, le=50, description="Model calls with tools in one turn.", examples=[8]
    )
    allowed_tools: Names = Field(
        default=(),
        description='Tools it may use, such as ["search_*"]. Empty: all.',
        examples=[[]],
    )
    denied_tools: Names = Field(
        default=(),
        description="Tools it may not use, the same way; a denial wins.",
        examples=[["exec"]],
    )
    budget: Annotated[tuple[_Budget, ...], Field(strict=False)] = Field(
        default=(),
        description='What it may use: "2 usd a day", "300000 tokens a turn"; turn, day or month. '
        "Beside those of [budget].",
        examples=[["2 usd a day"]],
    )
    heartbeat: Annotated[int, at_least_or_none(5, none="none")] = Field(
        default=0,
        ge=0,
        description="Minutes between two looks of its own at agents/NAME/HEARTBEAT.md in the "
        "workspace, 5 at least. 0: none, or for default heartbeat.every_minutes.",
        examples=[0],
    )

    @model_validator(mode="after")
    def _one_prompt(self) -> AgentSettings:
        if self.system_prompt.strip() and self.system_prompt_file.strip():
            raise ValueError(
                "system_prompt and system_prompt_file are both set, and only one can count: remove "
                "one of them"
            )
        return self


class BindingSettings(Section):
    """Which agent answers in which chats. The first that fits decides, so those for one chat stand
    before those with a *; what none takes goes to default."""

    channel: Annotated[
        Text, matching(r"telegram|slack|console|\*", "allowed: telegram, slack, console, *")
    ] = Field(description="telegram, slack, console, or * for all.", examples=["telegram"])
    chat_id: Annotated[
        Text,
        matching(r"[^\s:]+", "allowed: the id alone, without the channel and without a topic"),
    ] = Field(
        description="The chat's id, with all its topics or threads; a * stands for any characters.",
        examples=["-100123"],
    )
    agent: Text = Field(description="Its name.", examples=["work"])


class AgentsSettings(Section):
    """Agents, by their names, and the chats that they take."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[AgentName, AgentSettings] = Field(init=False)

    bindings: Annotated[tuple[BindingSettings, ...], Field(strict=False)] = Field(
        default=(), description="Which agent answers where. In the environment: JSON."
    )
    default: AgentSettings = AgentSettings()

    @property
    def by_name(self) -> Mapping[str, AgentSettings]:
        """All of them, `default` first."""
        return MappingProxyType({DEFAULT_AGENT: self.default, **self.__pydantic_extra__})

    def rules(self) -> tuple[Binding, ...]:
        """The bindings, as the core knows them."""
        return tuple(
            Binding(channel=one.channel, chat_id=one.chat_id, agent=one.agent)
            for one in self.bindings
        )
