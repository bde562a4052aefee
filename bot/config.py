"""The settings: read once at start from the environment and config.toml, checked at once, frozen.

`load` is called by the command line; each component gets the few values it needs. Descriptions
here are the comments of config.example.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

CONFIG_NAME = "config.toml"
ENV_PREFIX = "HEARTHBOT_"
ENV_HOME = "HEARTHBOT_HOME"
ENV_DELIMITER = "__"


KeyPath = tuple[str, ...]
Loc = tuple[str | int, ...]
"""A key path, or one item of its list."""


# --- checks of single values -------------------------------------------------------------------


def _person_number(value: object) -> int:
    """A Telegram user id, however it was written. Never a name."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**19:
        return value
    text = value.strip() if isinstance(value, str) else ""
    if number := re.fullmatch(r"(?:telegram:)?([1-9][0-9]{0,18})", text):
        return int(number[1])
    raise ValueError(_person_hint(value, text))


def _person_hint(value: object, text: str) -> str:
    if isinstance(value, str) and not text:
        return "an empty entry lets nobody in; remove it"
    if text == "*":
        return 'an entry is a user\'s number; to let everyone in, set access.policy = "open"'
    return (
        "an entry is a user's number, such as 99 or telegram:99: "
        "names can change hands, the number cannot"
    )


def _http_url(value: str) -> str:
    if value and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise ValueError("allowed: an address that begins with https:// or http://")
    return value.rstrip("/")


PersonNumber = Annotated[int, BeforeValidator(_person_number)]
Names = Annotated[tuple[str, ...], Field(strict=False)]


# --- the sections ------------------------------------------------------------------------------


class _Section(BaseModel):
    # Strict: in TOML, "8" is not a number and 1 is not true. Input is hidden because pydantic
    # would otherwise quote a mistyped secret.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class LlmSettings(_Section):
    """The language model."""

    model: str = Field(
        default="",
        description="The model, such as openai/gpt-4.1-mini. Empty: the bot picks one at start "
        "and says which and why.",
    )
    api_base: Annotated[str, AfterValidator(_http_url)] = Field(
        default="",
        description="Address of an OpenAI-compatible endpoint; it usually ends in /v1. Empty: the "
        "provider's own.",
    )
    api_key: SecretStr = Field(
        default=SecretStr(""),
        description="The provider's key. Empty: its usual environment variable.",
    )
    client: Literal["auto", "direct"] = Field(
        default="auto",
        description="How the model is reached. Both are the direct client for OpenAI-compatible "
        "endpoints: this version has no other.",
    )
    max_output_tokens: int = Field(
        default=8192, ge=1, description="Tokens that one answer may have."
    )
    window: int = Field(
        default=0, ge=0, description="The model's context window in tokens. 0: known by its name."
    )
    timeout_s: float = Field(default=120.0, gt=0, description="Limit of one model call, seconds.")


class TelegramSettings(_Section):
    """Telegram. Off while there is no token."""

    token: SecretStr = Field(
        default=SecretStr(""), description="The bot's token, from @BotFather. Empty: no Telegram."
    )
    base_url: Annotated[str, AfterValidator(_http_url)] = Field(
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
    webhook_listen: str = Field(
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
    send_timeout_s: float = Field(default=20.0, gt=0, description="Limit of one send, seconds.")

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

    @field_validator("webhook_listen")
    @classmethod
    def _webhook_listen(cls, listen: str) -> str:
        parts = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/]+):([0-9]{1,5})", listen)
        if parts is None or int(parts[1]) > 65535:
            raise ValueError("allowed: host:port, such as 127.0.0.1:8443")
        return listen


class AccessSettings(_Section):
    """Who may talk to the bot."""

    policy: Literal["pairing", "allowlist", "open"] = Field(
        default="pairing",
        description="Strangers get a code that the owner approves; or are refused unless listed; "
        "or are let in.",
    )


class AgentSettings(_Section):
    """The assistant itself. The agent named default always exists."""

    system_prompt: str = Field(
        default="", description="What the assistant is, in place of prompts/system.md."
    )
    system_prompt_file: str = Field(
        default="", description="The same from a file; a relative path starts in the workspace."
    )
    persona_dir: str = Field(
        default="",
        description="Folder that holds instructions.md. Empty: agents/default in the workspace.",
    )
    temperature: float = Field(
        default=0.4, ge=0, le=2, description="How freely the model chooses its words."
    )
    max_steps: int = Field(
        default=8, ge=1, le=50, description="Model calls with tools in one turn."
    )
    allowed_tools: Names = Field(
        default=(), description='Tools it may use, such as ["search_*"]. Empty: all.'
    )
    denied_tools: Names = Field(
        default=(), description="Tools it may not use, the same way; a denial wins."
    )


class AgentsSettings(_Section):
    """The agents by name; this version serves `default` alone."""

    default: AgentSettings = AgentSettings()


class TurnsSettings(_Section):
    """How messages become turns."""

    parallel: int = Field(default=64, ge=1, description="Conversations that are served at once.")
    queue: Literal["steer", "followup", "collect"] = Field(
        default="steer",
        description="A message that arrives during a turn: is handed into it; or waits as a turn "
        "of its own; or is joined with others that arrive soon after.",
    )
    collect_s: float = Field(
        default=1.5, ge=0, description="With collect: how long it waits for more, seconds."
    )
    limit_s: float = Field(default=300.0, gt=0, description="Limit of one turn, seconds.")
    drain_s: float = Field(
        default=10.0, ge=0, description="At a stop, seconds that running turns get to finish."
    )


class PromptSettings(_Section):
    """What the model reads."""

    language: str = Field(
        default="auto",
        min_length=1,
        max_length=50,
        description="Language of replies; auto is the person's own.",
    )
    turn_layers: Literal["user", "system"] = Field(
        default="user",
        description="Where the changing part of the prompt goes: after the person's words, which "
        "keeps the provider's cache; or into the system message.",
    )
    bootstrap_chars_max: int = Field(
        default=20_000,
        ge=1,
        description="Characters of a workspace file such as AGENTS.md that are shown whole.",
    )


class ToolsSettings(_Section):
    """Limits of tools."""

    result_chars_max: int = Field(
        default=16_000, ge=1, description="Characters of a tool's result that the model reads."
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Limit of one tool call, seconds.")


class HistorySettings(_Section):
    """How much of a conversation is sent to the model."""

    messages_max: int = Field(default=50, ge=1, description="Messages at most.")
    tokens_max: int = Field(default=24_000, ge=1, description="Tokens at most.")


class LoggingSettings(_Section):
    """Logs."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is worth a line."
    )
    format: Literal["console", "json", "auto"] = Field(
        default="auto",
        description="Form of the lines; auto is console in a terminal, JSON elsewhere. "
        "The log file is always JSON.",
    )


class Settings(BaseSettings):
    """All settings. Made by `load`; `Settings()` is the defaults, whatever the environment."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
    )

    llm: LlmSettings = LlmSettings()
    telegram: TelegramSettings = TelegramSettings()
    access: AccessSettings = AccessSettings()
    agents: AgentsSettings = AgentsSettings()
    turns: TurnsSettings = TurnsSettings()
    prompt: PromptSettings = PromptSettings()
    tools: ToolsSettings = ToolsSettings()
    history: HistorySettings = HistorySettings()
    logging: LoggingSettings = LoggingSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # `load` lays the environment over the file itself: the library's sources stop at the
        # first problem, overlook unknown variables and forget where a value came from.
        return (init_settings,)

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is set: what must never be shown."""
        values = [_attribute(self, path) for path, field in KEYS.items() if is_secret(field)]
        return tuple(
            text
            for value in values
            if isinstance(value, SecretStr) and (text := value.get_secret_value())
        )


def _attribute(value: object, path: KeyPath) -> object:
    for name in path:
        value = getattr(value, name)
    return value


def _keys(model: type[BaseModel], path: KeyPath = ()) -> Iterator[tuple[KeyPath, FieldInfo]]:
    for name, field in model.model_fields.items():
        if section := section_of(field):
            yield from _keys(section, (*path, name))
        else:
            yield (*path, name), field


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section behind a field, None where the field is a key."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


KEYS: Mapping[KeyPath, FieldInfo] = MappingProxyType(dict(_keys(Settings)))
"""Every key there is, in the order of the example file."""

SECTIONS = tuple(dict.fromkeys(path[:-1] for path in KEYS))
"""Every table that holds keys."""


def is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr
