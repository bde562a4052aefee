"""The sections of the settings about tools: rules, programs, the web, MCP servers, and cost."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, SecretStr, model_validator

from bot.settings.schema.values import ServerName, VariableName, VariableValue
from memory.records.section import Names, Section, Text, Url

# --- tools ---------------------------------------------------------------------------------------


class ToolRuleSettings(Section):
    """A rule for tool calls; the first that fits wins over what is usual (outside effects and
    programs are asked about, all else is allowed)."""

    action: Literal["allow", "ask", "deny"] = Field(
        description="What becomes of the call.", examples=["ask"]
    )
    tools: Names = Field(
        default=(),
        description="Names or globs of tools. Empty: all.",
        examples=[["web_*", "github__*"]],
    )
    effect: Literal["any", "none", "workspace", "person", "outside"] = Field(
        default="any", description="Only tools with this effect.", examples=["outside"]
    )
    agent: str = Field(
        default="*", description="Only for agents with this name.", examples=["default"]
    )


class ToolsSettings(Section):
    """Tools: their limits, and who must agree to what."""

    result_chars_max: int = Field(
        default=16_000, ge=1, description="Characters of a tool's result that the model reads."
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Limit of one tool call, seconds.")
    approval_minutes: float = Field(
        default=10.0, gt=0, description="How long a card waits for an answer, minutes."
    )
    send_file_mb: int = Field(
        default=20,
        ge=1,
        le=50,
        description="Largest file that the assistant may send, MB. Telegram takes 50 MB at most.",
    )
    members_approve_outside: bool = Field(
        default=False,
        description="Members may use tools that act outside (never exec), and agree themselves.",
    )
    embeddings: bool = Field(
        default=True,
        description="Find tools by meaning too, not by words alone (100 MB of memory once used).",
    )
    offered_max: int = Field(
        default=25, ge=1, description="Tools that a request offers; those of playbooks come on top."
    )
    offered_best: int = Field(
        default=5, ge=0, description="Best fits to the message that are offered however good."
    )
    offered_fitting: int = Field(
        default=15, ge=0, description="Best fits that are offered where they are close enough."
    )
    offered_cosine: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Close enough by meaning, 0 to 1; measured for the embedder that comes along.",
    )
    offered_used: int = Field(
        default=8, ge=0, description="Tools used lately that stay when they are chosen afresh."
    )
    offered_turns: int = Field(default=3, ge=0, description="What lately means there, in turns.")
    sure_cosine: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="Where a tool fits better than this, the temperature is at most 0.3.",
    )
    rules: Annotated[tuple[ToolRuleSettings, ...], Field(strict=False)] = Field(
        default=(), description="Rules for tool calls. In the environment: JSON."
    )


class ExecSettings(Section):
    """Programs that the assistant may run, each time or once and for all with your consent."""

    enabled: bool = Field(default=True, description="Offer exec at all.")
    sandbox: bool = Field(
        default=True,
        description="Confine programs with bubblewrap where it works: no network, the workspace "
        "alone. Without it each call is asked about, and none is run after outside text.",
    )
    readable: Names = Field(
        default=(), description="More folders of this machine that programs may read."
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Limit of one program, seconds.")
    output_chars: int = Field(
        default=10_000,
        ge=500,
        description="Characters of its output that the model reads, beginning and end.",
    )
    memory_mb: int = Field(default=4_096, ge=64, description="Memory of one program, MB.")
    file_mb: int = Field(default=256, ge=1, description="Largest file it may write, MB.")


class WebSettings(Section):
    """Reading the web. Private and local addresses are refused, whatever name leads there."""

    allowed_hosts: Names = Field(
        default=(),
        description="Private hosts that may be fetched all the same: a name, name:port or a range "
        "such as 192.168.1.0/24.",
    )
    search: Literal["duckduckgo", "searxng", "brave", "tavily", "off"] = Field(
        default="duckduckgo", description="Who searches. brave and tavily want a key."
    )
    search_url: Url = Field(
        default="", description="Address of the search service; needed for searxng."
    )
    search_key: SecretStr = Field(default=SecretStr(""), description="Its key.")
    page_chars: int = Field(
        default=15_000,
        ge=3_000,
        le=200_000,
        description="Characters of a fetched page that are shown at once; the rest by page number.",
    )


# --- MCP -----------------------------------------------------------------------------------------


class McpServerSettings(Section):
    """An MCP server, whose tools are offered as NAME__tool: a program that is started here, or an
    address."""

    command: str = Field(
        default="",
        description="Program to start, by its name or its whole path. It runs in a folder of its "
        "own, data/mcp/NAME.",
        examples=["npx"],
    )
    args: Names = Field(
        default=(),
        description="Its arguments. A path is to be whole: also that of the workspace, where a "
        "server is to work in it.",
        examples=[["-y", "@modelcontextprotocol/server-memory"]],
    )
    env: Mapping[VariableName, VariableValue] = Field(
        default_factory=dict,
        description="Environment variables for it; it gets no other of the bot's.",
        examples=[{"GITHUB_TOKEN": "its key"}],
    )
    url: Url = Field(
        default="",
        description="Address of a server that runs already (streamable HTTP), in place of command.",
        examples=[""],
    )
    headers: Mapping[Text, VariableValue] = Field(
        default_factory=dict,
        description="HTTP headers for it.",
        examples=[{"Authorization": "Bearer its-token"}],
    )
    about: str = Field(
        default="",
        max_length=500,
        description="What it is for, in a line: the model reads it, and tools are found by it.",
        examples=["issues and code on GitHub"],
    )
    tools: Names = Field(
        default=(),
        description="Which of its tools are offered, by globs. Empty: all.",
        examples=[["search_*"]],
    )
    read_only: Names = Field(
        default=(),
        description="Tools that change nothing, whatever the server says.",
        examples=[["get_*"]],
    )
    outside: Names = Field(
        default=(),
        description="Tools that act outside, whatever the server says: asked about each time.",
        examples=[["delete_*"]],
    )
    trust: Literal["untrusted", "ours"] | bool = Field(
        default="untrusted",
        description="With true, tools of it that only read are called without a question. With "
        '"ours", what it returns may steer the assistant, too; else it is "untrusted".',
        examples=["untrusted"],
    )
    timeout_s: float = Field(
        default=60.0, gt=0, description="Limit of one call, seconds.", examples=[60.0]
    )
    refresh_minutes: float = Field(
        default=10.0,
        gt=0,
        description="How often its list of tools is read again, minutes.",
        examples=[10.0],
    )
    start: Literal["lazy", "eager"] = Field(
        default="lazy",
        description="Start it when a turn first wants tools, or with the bot.",
        examples=["lazy"],
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> McpServerSettings:
        if bool(self.command.strip()) == bool(self.url.strip()):
            raise ValueError("an MCP server needs a command or a url, and not both")
        return self


class McpSettings(Section):
    """MCP servers."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[ServerName, McpServerSettings] = Field(init=False)

    @property
    def by_name(self) -> Mapping[str, McpServerSettings]:
        """The servers."""
        return MappingProxyType(self.__pydantic_extra__)


# --- cost ----------------------------------------------------------------------------------------


class BudgetLimitSettings(Section):
    """A budget. What is near its end is done by the cheap model, then with less in the prompt, then
    not at all; reminders go on."""

    scope: Literal["bot", "person", "agent", "job"] = Field(
        description="Whose model calls it counts.", examples=["person"]
    )
    period: Literal["turn", "day", "month"] = Field(description="For how long.", examples=["day"])
    usd: float = Field(default=0.0, ge=0, description="In dollars.", examples=[0.5])
    tokens: int = Field(
        default=0, ge=0, description="In tokens, in place of dollars.", examples=[0]
    )
    of: str = Field(
        default="",
        description="One person's id, one agent's or job's name. Empty: each of them.",
        examples=[""],
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> BudgetLimitSettings:
        if bool(self.usd) == bool(self.tokens):
            raise ValueError("a budget needs usd or tokens, and not both")
        return self


class ModelRateSettings(Section):
    """How often a model may be called, where its provider allows only so much."""

    model: Text = Field(description="Name of the model.", examples=["gpt-4.1"])
    requests_per_minute: int = Field(
        default=0, ge=0, description="Calls. 0: no limit.", examples=[60]
    )
    tokens_per_minute: int = Field(
        default=0, ge=0, description="Tokens. 0: no limit.", examples=[30_000]
    )


class BudgetSettings(Section):
    """What model calls may cost, and when something is wrong."""

    limits: Annotated[tuple[BudgetLimitSettings, ...], Field(strict=False)] = Field(
        default=(), description="Budgets. In the environment: JSON."
    )
    warn_share: float = Field(
        default=0.8, gt=0, le=1, description="Share of a budget at which one warning is given."
    )
    brake: bool = Field(
        default=True, description="Pause all model calls when far more is used than usual."
    )
    brake_hour_tokens: int = Field(
        default=500_000, ge=1, description="Tokens of one hour at which it pauses."
    )
    brake_factor: float = Field(
        default=3.0,
        gt=1,
        description="It pauses too when two minutes use so many times what active minutes do.",
    )
    keep_days: int = Field(
        default=400, ge=1, description="Days that the record of model calls is kept."
    )
    rates: Annotated[tuple[ModelRateSettings, ...], Field(strict=False)] = Field(
        default=(), description="Rate limits of models. In the environment: JSON."
    )
