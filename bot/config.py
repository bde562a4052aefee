"""The settings: read once at start from the environment and config.toml, checked at once, frozen.

`load` is called by the command line; each component gets the few values it needs. Descriptions
here are the comments of config.example.toml.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agent.errors import SettingsWrong

CONFIG_NAME = "config.toml"
ENV_PREFIX = "HEARTHBOT_"
ENV_HOME = "HEARTHBOT_HOME"
_ENV_DELIMITER = "__"
SHOWN_CHARS_MAX = 60
"""Characters of a wrong value that a complaint quotes."""
_SECRET_LOOK = re.compile(
    r"[0-9]{3,}:[\w-]{8,}|\b(?:sk|pk|gsk|xox[a-z]|xapp|AIza)[-_]?\w{8,}|://[^/\s]*@"
)
"""A token in the wrong place: of Telegram, Slack, a provider, or a password in an address."""


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
        description="How the model is reached; direct is the small client for OpenAI-compatible "
        "endpoints.",
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
        env_nested_delimiter=_ENV_DELIMITER,
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
        values = [_attribute(self, path) for path, field in KEYS.items() if _is_secret(field)]
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


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What was set, before it is checked, and where."""

    file: Path
    in_file: dict[str, Any]
    in_env: dict[KeyPath, object]

    def merged(self) -> dict[str, Any]:
        """The environment laid over the file."""
        merged = copy.deepcopy(self.in_file)
        for path, value in self.in_env.items():
            table = merged
            for name in path[:-1]:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    break  # the file has a value where a section belongs: that is the complaint
            else:
                table[path[-1]] = value
        return merged

    def place(self, path: KeyPath, loc: Loc = ()) -> str:
        """Where a key's value came from, and which one it is; `loc` may name one item of it."""
        source = f"environment variable {_variable(path)}" if path in self.in_env else self.file
        return f"{source}: {dotted(loc or path)}"


def load(home: Path, env: Mapping[str, str]) -> Settings:
    """The settings of a home: environment over config.toml over defaults.

    Raises SettingsWrong, whose text names every problem in one go and never shows a secret.
    """
    file = home / CONFIG_NAME
    in_file, unreadable = _read_file(file)
    in_env, unknown_variables = _read_environment(env)
    given = _Given(file=file, in_file=in_file, in_env=in_env)
    problems = [*unreadable, *unknown_variables, *_unknown_keys(given)]
    settings = Settings()
    if not unreadable:
        settings, wrong = _checked(given)
        problems += wrong
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        lines = "".join(f"\n- {problem}" for problem in problems)
        raise SettingsWrong(f"The settings cannot be used: {count}.{lines}")
    return settings


def holds_secret(file: Path) -> bool:
    """Whether a config.toml holds a secret, so that its mode matters."""
    values, unreadable = _read_file(file)
    return bool(unreadable) or any(_secrets_in(values))


def _read_file(file: Path) -> tuple[dict[str, Any], list[str]]:
    """The tables of a file, or why there are none. A file that is missing is empty."""
    try:
        # Some editors put a byte order mark in front, which TOML does not know.
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [f"{file}: cannot be read: {error.strerror}"]
    except UnicodeDecodeError as error:
        return {}, [f"{file}: is not UTF-8 text (byte {error.start + 1})"]
    try:
        return tomllib.loads(text), []
    except tomllib.TOMLDecodeError as error:
        return {}, [f"{file}, {_toml_position(str(error), text)}"]


def _toml_position(message: str, text: str) -> str:
    reason, _, position = message.rpartition(" (at ")
    if numbers := re.fullmatch(r"line (\d+), column (\d+)\)", position):
        line, column = int(numbers[1]), int(numbers[2])
    else:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    return f"line {line}, column {column}: {reason or message}"


def _read_environment(env: Mapping[str, str]) -> tuple[dict[KeyPath, object], list[str]]:
    """Values by key, and a complaint for each variable that looks like ours and is not."""
    known = {_variable(path): path for path in KEYS}
    found: dict[KeyPath, object] = {}
    problems = []
    for name, text in env.items():
        if path := known.get(name):
            found[path] = _decoded(text, KEYS[path])
        elif name.upper().startswith(ENV_PREFIX) and name != ENV_HOME:
            path = tuple(name[len(ENV_PREFIX) :].lower().split(_ENV_DELIMITER))
            nearest = _nearest(path)
            hint = f"; the nearest is {_variable(nearest)}" if nearest else ""
            problems.append(f"environment variable {name}: unknown{hint}")
    return found, problems


def _decoded(text: str, field: FieldInfo) -> object:
    """A variable's text as the type of its key, or as it is for the check to refuse."""
    if field.annotation is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if field.annotation in {int, float}:
        number = int if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else float
        return number(text) if re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]*)?", text) else text
    if get_origin(field.annotation) is tuple:
        return _decoded_list(text)
    return text


def _decoded_list(text: str) -> object:
    """`["a", "b"]` as JSON, or `a, b`."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return [part.strip() for part in text.split(",")] if text.strip() else []


# --- checking, and what is said ----------------------------------------------------------------


def allowed(field: FieldInfo) -> str:
    """What a key takes, in words."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "a list"
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return ("a whole number" if kind is int else "a number") + _bounds(field)
    return "text" + _lengths(field)


def _bounds(field: FieldInfo) -> str:
    least = next((mark.ge for mark in field.metadata if isinstance(mark, Ge)), None)
    most = next((mark.le for mark in field.metadata if isinstance(mark, Le)), None)
    above = next((mark.gt for mark in field.metadata if isinstance(mark, Gt)), None)
    if above is not None:
        return f" above {above}"
    return f" from {least} to {most}" if most is not None else f", at least {least}"


def _lengths(field: FieldInfo) -> str:
    most = next((mark.max_length for mark in field.metadata if isinstance(mark, MaxLen)), None)
    if most is not None:
        return f", 1 to {most} characters"
    return ", not empty" if any(isinstance(mark, MinLen) for mark in field.metadata) else ""


def dotted(path: Loc) -> str:
    """A key path as one would write it: `telegram.allow_from[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


def _variable(path: KeyPath) -> str:
    return ENV_PREFIX + _ENV_DELIMITER.join(path).upper()


def _unknown_keys(given: _Given) -> list[str]:
    agents = given.in_file.get("agents")
    other_agents = [
        ("agents", name)
        for name, value in (agents if isinstance(agents, dict) else {}).items()
        if isinstance(value, dict) and name != "default"
    ]
    unknown = [
        path
        for path in _leaves(given.in_file)
        if path not in KEYS
        and path[:2] not in other_agents
        and not any(known[: len(path)] == path for known in SECTIONS)
    ]
    return [
        *(f"{given.place(path)}: unknown key; {_known_hint(path)}" for path in unknown),
        *(
            f"{given.place(path)}: this version serves one agent, agents.default"
            for path in other_agents
        ),
    ]


def _leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths that a file sets; a table where a key belongs is one, and so is an empty table."""
    for name, value in values.items():
        here = (*path, name)
        if isinstance(value, dict) and value and here not in KEYS:
            yield from _leaves(value, here)
        else:
            yield here


def _known_hint(path: KeyPath) -> str:
    if nearest := _nearest(path):
        return f"the nearest is {dotted(nearest)}"
    if section := next((known for known in SECTIONS if path[: len(known)] == known), None):
        names = [known[-1] for known in KEYS if known[:-1] == section]
        return f"[{dotted(section)}] takes {', '.join(names)}"
    return f"there are the sections {', '.join(dotted(known) for known in SECTIONS)}"


def _nearest(path: KeyPath) -> KeyPath | None:
    """The known key with the most similar name, rather one of the same section."""

    def same_name(known: KeyPath) -> float:
        # A lone name may be a whole path that was joined wrongly: HEARTHBOT_TELEGRAM_TOKEN.
        whole = _ratio(dotted(path), dotted(known)) if len(path) == 1 else 0.0
        return max(whole, _ratio(path[-1], known[-1]))

    def likeness(known: KeyPath) -> float:
        same_section = 0.2 if path[:-1] == known[:-1] else 0.0
        return same_name(known) + same_section + _ratio(dotted(path), dotted(known)) / 10

    best = max(KEYS, key=likeness)
    return best if same_name(best) > 0.6 else None


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _checked(given: _Given) -> tuple[Settings, list[str]]:
    """The settings, and what is wrong with the values (then the settings mean nothing)."""
    merged = given.merged()
    references = list(_references(merged))
    details: list[ErrorDetails] = []
    settings = Settings()
    try:
        # Known sections alone: the library takes arguments such as _cli_parse_args here too.
        settings = Settings(
            **{name: merged[name] for name in Settings.model_fields if name in merged}
        )
    except ValidationError as error:
        details = error.errors(include_url=False)
    # Outside of the `except`, so that the error raised at the end does not drag along one that
    # holds the input, secrets included.
    return settings, [
        *(_reference_refused(given, loc) for loc in references),
        *(
            _complaint(given, merged, detail)
            for detail in details
            # _unknown_keys says it better
            if detail["type"] != "extra_forbidden" and detail["loc"] not in references
        ),
    ]


def _references(merged: Mapping[str, Any]) -> Iterator[Loc]:
    """Where a value is written `${NAME}`, as other programs would fill in."""
    for path in KEYS:
        value = _found(merged, path)
        if _is_reference(value):
            yield path
        for at, item in enumerate(value if isinstance(value, list) else []):
            if _is_reference(item):
                yield (*path, at)


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\s*\$\{[^{}]*\}\s*", value) is not None


def _reference_refused(given: _Given, loc: Loc) -> str:
    path = _key_of(loc)
    return (
        f"{given.place(path, loc)}: a reference like ${{NAME}} is not read here; "
        f"set the environment variable {_variable(path)} instead"
    )


def _complaint(given: _Given, merged: dict[str, Any], detail: ErrorDetails) -> str:
    path = _key_of(detail["loc"])
    place = given.place(path, detail["loc"])
    field = KEYS.get(path)
    if field is None:
        return f"{place}: found a value; allowed: a section, [{dotted(path)}]"
    found = _shown(merged, path, detail["input"]) if _found(merged, path) != "" else "nothing"
    own_words = detail.get("ctx", {}).get("error")
    return f"{place}: found {found}; {own_words or f'allowed: {allowed(field)}'}"


def _key_of(loc: Loc) -> KeyPath:
    return tuple(part for part in loc if isinstance(part, str))


def _shown(merged: dict[str, Any], path: KeyPath, value: object) -> str:
    """A value that may be shown to whoever reads the log."""
    if isinstance(value, SecretStr) or _is_secret(KEYS[path]):
        return "a value that is kept secret"
    if isinstance(value, dict):
        return "a table"
    text = repr(value)
    if any(secret in text for secret in _secrets_in(merged)) or _SECRET_LOOK.search(text):
        return "a value that looks like a secret"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr


def _secrets_in(values: Mapping[str, Any]) -> Iterator[str]:
    for path, field in KEYS.items():
        value = _found(values, path)
        if _is_secret(field) and isinstance(value, str) and value:
            yield value


def _found(values: Any, path: KeyPath) -> Any:
    """What stands at a path, "" where there is nothing."""
    for name in path:
        values = values.get(name, "") if isinstance(values, dict) else ""
    return values
