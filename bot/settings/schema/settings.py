"""The settings: read once at start from the environment and config.toml, checked at once, frozen.

`load` is called by the command line; each component gets the few values it needs. Descriptions
here are the comments of config.example.toml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from bot.settings.schema.sections import (
    AgentsSettings,
    AttachmentsSettings,
    HeartbeatSettings,
    MemorySettings,
    SchedulerSettings,
)
from bot.settings.schema.tools import (
    BudgetSettings,
    ExecSettings,
    McpSettings,
    ToolsSettings,
    WebSettings,
)
from bot.settings.schema.values import (
    AckReaction,
    ApiRoot,
    Folder,
    JsonTable,
    ListenOn,
    Pattern,
    PersonNumber,
    SkillName,
    SlackMember,
    VariableName,
    VariableValue,
    listed,
)
from bot.settings.tree import ANY_NAME, KeyPath, keys_of, secrets_of, sections_of
from memory.records.section import (
    AgentTasksSettings,
    HistorySettings,
    LayersSettings,
    LlmSettings,
    Names,
    Section,
    Text,
    TurnsSettings,
    Url,
)

CONFIG_NAME = "config.toml"
ENV_PREFIX = "HEARTHBOT_"
ENV_HOME = "HEARTHBOT_HOME"
ENV_DELIMITER = "__"


class TelegramSettings(Section):
    """Telegram. Off while there is no token."""

    token: SecretStr = Field(
        default=SecretStr(""), description="The bot's token, from @BotFather. Empty: no Telegram."
    )
    base_url: Url = Field(
        default="https://api.telegram.org", min_length=1, description="Root of the Bot API."
    )
    mode: Literal["polling", "webhook"] = Field(
        default="polling", description="How updates arrive; polling needs no public address."
    )
    webhook_url: str = Field(
        default="",
        validate_default=True,
        description="Webhook mode: the public https address that Telegram calls.",
    )
    webhook_secret: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="Webhook mode: the secret that Telegram sends along; 1 to 256 characters of "
        "A-Z, a-z, 0-9, _ and -. A webhook without one is refused.",
    )
    webhook_listen: ListenOn = Field(
        default="127.0.0.1:8443", description="Webhook mode: host:port to listen on."
    )
    allow_from: Annotated[tuple[PersonNumber, ...], Field(strict=False)] = Field(
        default=(),
        description="User numbers that are always let in, such as [99]. Empty: nobody by this "
        "list. Names are refused, since they can change hands.",
    )
    group_policy: Literal["mention", "all", "off"] = Field(
        default="mention",
        description="In groups, answer when mentioned, replied to or commanded; or always; or "
        "never.",
    )
    streaming: bool = Field(
        default=True, description="Show a reply while it is written, by editing one message."
    )
    stream_every_s: float = Field(
        default=1.0, ge=0, description="Seconds between two edits of a reply in a private chat."
    )
    stream_every_group_s: float = Field(
        default=3.0, ge=0, description="Seconds between two edits of a reply in a group."
    )
    rate_per_chat: float = Field(
        default=1.0, ge=0, description="Messages a second to one chat. 0: no limit."
    )
    rate_per_group_minute: float = Field(
        default=20.0, ge=0, description="Messages a minute to one group. 0: no limit."
    )
    rate_total: float = Field(
        default=30.0, ge=0, description="Messages a second to all chats together. 0: no limit."
    )
    poll_timeout_s: int = Field(
        default=30, ge=1, le=50, description="How long one poll waits for news, seconds."
    )
    stall_s: float = Field(
        default=120.0,
        gt=0,
        description="Seconds without an answer to a poll until its connections are made anew.",
    )
    send_timeout_s: float = Field(default=20.0, gt=0, description="Limit of one send, seconds.")
    ack_reaction: AckReaction = Field(
        default="",
        description="A reaction that shows at once that a message was taken in, such as 👀. Empty: "
        "none.",
        examples=["👀"],
    )

    @field_validator("token")
    @classmethod
    def _token_form(cls, token: SecretStr) -> SecretStr:
        text = token.get_secret_value()
        if text and not re.fullmatch(r"[0-9]+:[A-Za-z0-9_-]+", text):
            raise ValueError("allowed: a token as @BotFather gives it, 123456:ABC-DEF")
        return token

    @field_validator("webhook_url")
    @classmethod
    def _webhook_url(cls, url: str, info: ValidationInfo) -> str:
        if (url or info.data.get("mode") == "webhook") and not re.fullmatch(
            r"https://[^\s/]+(/\S*)?", url
        ):
            raise ValueError("webhook mode needs the public address, beginning with https://")
        return url

    @field_validator("webhook_secret")
    @classmethod
    def _webhook_secret(cls, secret: SecretStr, info: ValidationInfo) -> SecretStr:
        text = secret.get_secret_value()
        if not text and info.data.get("mode") == "webhook":
            raise ValueError("webhook mode needs a secret, or anybody could send forged updates")
        if text and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", text):
            raise ValueError("allowed: 1 to 256 characters of A-Z, a-z, 0-9, _ and -")
        return secret


class SlackSettings(Section):
    """Slack. Off while there is no bot token."""

    bot_token: SecretStr = Field(
        default=SecretStr(""),
        description="The bot token of your Slack app, from OAuth & Permissions; it begins with "
        "xoxb-. Empty: no Slack.",
    )
    mode: Literal["socket", "http"] = Field(
        default="socket",
        description="How events arrive. socket: Socket Mode, which needs no public address. http: "
        "Slack posts them to an address of yours.",
    )
    app_token: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="Socket Mode: the app-level token with connections:write, from Basic "
        "Information; it begins with xapp-.",
    )
    signing_secret: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="http: the signing secret from Basic Information. Without one anybody could "
        "send forged events, so it is refused.",
    )
    listen: ListenOn = Field(
        default="127.0.0.1:3000",
        description="http: host:port to listen on, at the path /slack/events; a proxy of yours "
        "adds the https that Slack asks for.",
    )
    base_url: ApiRoot = Field(
        default="https://slack.com/api/", min_length=1, description="Root of the Web API."
    )
    allow_from: Annotated[tuple[SlackMember, ...], Field(strict=False)] = Field(
        default=(),
        description='Members that are always let in, such as ["T012AB3CD:U045EF6GH"]: the ids of '
        "the workspace and of the member. Empty: nobody by this list. Names are refused.",
    )
    group_policy: Literal["mention", "all", "off"] = Field(
        default="mention",
        description="In channels and group conversations, answer when mentioned; or always; or "
        "never.",
    )
    streaming: bool = Field(
        default=True, description="Show a reply while it is written, by editing one message."
    )
    stream_every_s: float = Field(
        default=1.5,
        ge=0,
        description="Seconds between two edits of a reply; more while several are written at once.",
    )
    rate_per_chat: float = Field(
        default=1.0, ge=0, description="Messages a second to one conversation. 0: no limit."
    )
    rate_total: float = Field(
        default=5.0, ge=0, description="Messages a second to the whole workspace. 0: no limit."
    )
    rate_edits_minute: float = Field(
        default=50.0, ge=0, description="Edits a minute in the whole workspace. 0: no limit."
    )
    send_timeout_s: float = Field(default=20.0, gt=0, description="Limit of one send, seconds.")

    @field_validator("bot_token", "app_token")
    @classmethod
    def _token_form(cls, token: SecretStr, info: ValidationInfo) -> SecretStr:
        kind = "xoxb-" if info.field_name == "bot_token" else "xapp-"
        text = token.get_secret_value()
        if text and not re.fullmatch(rf"{kind}[A-Za-z0-9-]+", text):
            raise ValueError(f"allowed: a token as Slack shows it, which begins with {kind}")
        if info.field_name == "app_token" and not text and _slack_wants("socket", info):
            raise ValueError(
                "Socket Mode needs the app-level token (xapp-…): Basic Information, App-Level "
                "Tokens, with the scope connections:write"
            )
        return token

    @field_validator("signing_secret")
    @classmethod
    def _signing_secret(cls, secret: SecretStr, info: ValidationInfo) -> SecretStr:
        if not secret.get_secret_value().strip() and _slack_wants("http", info):
            raise ValueError("mode http needs it, or anybody could send forged events")
        return secret


def _slack_wants(mode: str, info: ValidationInfo) -> bool:
    token = info.data.get("bot_token")
    return (
        isinstance(token, SecretStr)
        and bool(token.get_secret_value())
        and info.data.get("mode") == mode
    )


class AccessSettings(Section):
    """Who may talk to the bot."""

    policy: Literal["pairing", "allowlist", "open"] = Field(
        default="pairing",
        description="Strangers get a code that the owner approves; or are refused unless listed; "
        "or are let in.",
    )
    messages_per_minute: int = Field(
        default=20,
        ge=0,
        description="Messages of one person that are taken in within a minute, commands not "
        "counted; further ones wait in their order. 0: no limit.",
    )


class AutoInvokeSettings(Section):
    """A tool that is called when a reply was of no help, and what it gets."""

    tool: Text
    args: JsonTable = Field(default_factory=dict)


class ForceIncludeSettings(Section):
    """A rule for messages that fit one of its patterns, and what the model then gets."""

    patterns: Annotated[tuple[Pattern, ...], Field(strict=False, min_length=1)] = Field(
        description="Regular expressions, searched for in the message; capitals do not matter.",
        examples=[[r"\bdeploy(ment)?\b", "^ship it"]],
    )
    skills: Names = Field(
        default=(),
        description="Skills that are named first among those for this message.",
        examples=[["code-review"]],
    )
    plugins: Names = Field(
        default=(),
        description="MCP servers whose tools are offered first.",
        examples=[["github"]],
    )
    instruction: str = Field(
        default="",
        max_length=4000,
        description="What the model is told for this message alone.",
        examples=["Ask which environment is meant before you do anything."],
    )
    auto_invoke: Annotated[
        tuple[AutoInvokeSettings, ...], Field(strict=False), BeforeValidator(listed)
    ] = Field(
        default=(),
        validate_default=True,
        description="A tool to call when the model called none and its reply is of no help; of "
        "several, the first that works. {{query}} in its args stands for the message.",
        examples=[{"tool": "search_memories", "args": {"query": "{{query}}"}}],
    )

    @field_validator("auto_invoke")
    @classmethod
    def _does_something(
        cls, value: tuple[AutoInvokeSettings, ...], info: ValidationInfo
    ) -> tuple[AutoInvokeSettings, ...]:
        # What is missing in `info.data` was given and is wrong, which is said elsewhere.
        others = [info.data.get(name, "wrong") for name in ("skills", "plugins", "instruction")]
        if not value and not any(
            other.strip() if isinstance(other, str) else other for other in others
        ):
            raise ValueError(
                "a rule needs at least one of skills, plugins, instruction and auto_invoke"
            )
        return value


class PromptSettings(LayersSettings):
    """What the model reads."""

    force_include: Annotated[tuple[ForceIncludeSettings, ...], Field(strict=False)] = Field(
        default=(),
        description="Rules that make sure that a skill, an MCP server or an instruction is there "
        "for messages of some kind. In the environment: JSON.",
    )


class SkillSettings(Section):
    """A skill, by its name."""

    env: Mapping[VariableName, VariableValue] = Field(
        default_factory=dict,
        description="Environment variables for this skill's scripts, which no other program sees. "
        "A single one can also come from the bot's environment: "
        "HEARTHBOT_SKILLS__WEATHER__ENV__WEATHER_API_KEY, with _ for a hyphen in the skill's name.",
        examples=[{"WEATHER_API_KEY": "the key that you were given"}],
    )


class SkillsSettings(Section):
    """Skills."""

    # A skill's name has no underscore and a key here has one: they cannot be mixed up.
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[SkillName, SkillSettings] = Field(init=False)

    user_dir: Folder = Field(
        default="",
        description="A folder of skills that is shared with other programs, such as "
        "~/.agents/skills. Empty: off.",
    )

    @property
    def by_name(self) -> Mapping[str, SkillSettings]:
        """The skills that have settings of their own."""
        return MappingProxyType(self.__pydantic_extra__)


class TraceSettings(Section):
    """What is kept of a turn, so that one can see why it went as it did."""

    keep_days: int = Field(default=30, ge=1, le=36_500, description="Days that it is kept.")


class LoggingSettings(Section):
    """Logs."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is worth a line."
    )
    format: Literal["console", "json", "auto"] = Field(
        default="auto",
        description="Form of the lines; auto is console in a terminal, JSON elsewhere. "
        "The log file is always JSON.",
    )


class Settings(BaseModel):
    """All settings. Made by `load`; `Settings()` is the defaults, whatever the environment."""

    # `load` lays the environment over the file itself: the sources that come with pydantic-settings
    # stop at the first problem, overlook unknown variables and forget where a value came from.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    llm: LlmSettings = LlmSettings()
    telegram: TelegramSettings = TelegramSettings()
    slack: SlackSettings = SlackSettings()
    access: AccessSettings = AccessSettings()
    attachments: AttachmentsSettings = AttachmentsSettings()
    agents: AgentsSettings = AgentsSettings()
    turns: TurnsSettings = TurnsSettings()
    prompt: PromptSettings = PromptSettings()
    skills: SkillsSettings = SkillsSettings()
    tools: ToolsSettings = ToolsSettings()
    exec: ExecSettings = ExecSettings()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    subagents: AgentTasksSettings = AgentTasksSettings()
    budget: BudgetSettings = BudgetSettings()
    memory: MemorySettings = MemorySettings()
    history: HistorySettings = HistorySettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    trace: TraceSettings = TraceSettings()
    logging: LoggingSettings = LoggingSettings()

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is set: what must never be shown."""
        return tuple(text for text in secrets_of(self) if text)


_ALL = dict(keys_of(Settings))

KEYS: Mapping[KeyPath, FieldInfo] = MappingProxyType(
    {path: field for path, field in _ALL.items() if ANY_NAME not in path}
)
"""Every key there is, in the order of the example file."""

KEYS_BY_NAME: Mapping[KeyPath, FieldInfo] = MappingProxyType(
    {path: field for path, field in _ALL.items() if ANY_NAME in path}
)
"""The keys of tables that the owner names: `("skills", ANY_NAME, "env")`."""

SECTIONS = tuple(sections_of(Settings))
"""Every table that holds keys."""
