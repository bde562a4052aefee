"""The Markdown that models write, as a parser: the rules added to markdown-it-py.

On top of CommonMark with tables and strikethrough: ||spoilers||, and formulas, bare addresses and
names like `__init__.py` that are kept as they stand. No raw HTML, no reference definitions.
linkify-it is not used: chat platforms link bare addresses themselves, and its version 2.2 needs
more than 12 s for 200,000 characters of "http://a/(((".
"""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

LEVELS_MAX = 40  # deeper blocks would be dropped by the parser: such a text is shown as it is
URL_MAX = 1_500  # characters; longer ones stay text
SCHEMES = ("http://", "https://", "mailto:", "tg://")

_URL_HEAD = re.compile(r"(?<![A-Za-z0-9+.-])(?:https?|ftp|tg)$", re.I)
_URL_REST = re.compile(r"://[^\s<>\[\]\"`|\\\x00-\x1f\u3000-\u303f\uff00-\uff0f]{1,2000}")
_URL_TAIL = "*_~.,;:!?'"
_MATHS = re.compile(
    r"\$\$[^`]{1,2000}?\$\$"
    r"|(?<![\w$])\$(?![\s$])[^$`\n]{0,300}(?<!\s)\$(?![\w$])"
    r"|\\\([^`]{1,1000}?\\\)"
    r"|\\\[[^`]{1,2000}?\\\]"
)
_DUNDER = re.compile(r"__([a-z0-9]+(?:_[a-z0-9]+)*)__(?=([.(]\w|\(\))?)")
_DUNDERS = {"all", "call", "class", "dict", "doc", "enter", "exit", "file", "init", "main", "name"}
_DUNDERS |= {"new", "repr", "slots", "str", "version"}


@cache
def parser() -> MarkdownIt:
    md = _Markdown("commonmark", {"html": False, "maxNesting": LEVELS_MAX})
    md.inline = _Inline()
    md.enable(["table", "strikethrough"])
    md.disable(["reference", "html_block", "html_inline", "linkify", "fragments_join", "text_join"])
    md.inline.add_terminator_char("|")
    md.inline.ruler.before("escape", "maths", _maths)
    md.inline.ruler.before("emphasis", "spoiler", _spoiler)
    md.inline.ruler.before("emphasis", "dunder", _dunder)
    md.inline.ruler.before("emphasis", "address", _address)
    return md


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return len(url) <= URL_MAX and url.lower().startswith(SCHEMES)


class _State(StateInline):
    """Notes where each token begins in the text of its block."""

    pending_at = 0

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta["at"] = self.pending_at
        return token


class _Inline(ParserInline):
    """The library's inline parser, keeping positions; joining of fragments would lose them."""

    def tokenize(self, state: StateInline) -> None:
        assert isinstance(state, _State)
        rules = self.ruler.getRules("")
        deep = state.level >= state.md.options["maxNesting"]
        while state.pos < state.posMax:
            at, known = state.pos, len(state.tokens)
            if not state.pending:
                state.pending_at = at
            if deep or not any(rule(state, False) for rule in rules):
                state.append_pending(state.src[at])
                state.pos = at + 1
            _place(state.tokens, known, at)
        if state.pending:
            state.pushPending()

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _place(tokens: list[Token], known: int, at: int) -> None:
    for token in tokens[known:]:
        if "at" in token.meta:
            continue
        token.meta["at"] = at
        if token.type == "text":
            at += len(token.content)
        elif token.info == "auto":
            at += 1


def _maths(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = _MATHS.match(state.src, state.pos, state.posMax)
    return found is not None and _whole(state, found.end(), silent)


def _address(state: StateInline, silent: bool) -> bool:
    """A bare address, so that "_" and "*" in it are not taken for emphasis."""
    if state.src[state.pos] != ":" or not state.src.startswith("://", state.pos):
        return False
    if not _URL_HEAD.search(state.src[max(0, state.pos - 8) : state.pos]):
        return False
    found = _URL_REST.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    address = found[0].rstrip(_URL_TAIL)
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(_URL_TAIL)
    return len(address) > 3 and _whole(state, state.pos + len(address), silent)


def _dunder(state: StateInline, silent: bool) -> bool:
    """`__init__.py` written without backticks is a name, not bold."""
    if not state.src.startswith("__", state.pos):
        return False
    found = _DUNDER.match(state.src, state.pos, state.posMax)
    if found is None or not (found[2] or found[1] in _DUNDERS):
        return False
    return _whole(state, found.end(), silent)


def _whole(state: StateInline, end: int, silent: bool) -> bool:
    if not silent:
        state.push("whole", "", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def _spoiler(state: StateInline, silent: bool) -> bool:
    """||text||, not `a || b || c`: nothing blank may touch the bars from inside."""
    start = state.pos + 2
    if not state.src.startswith("||", state.pos):
        return False
    end = state.src.find("||", start, state.posMax)
    if end <= start or state.src[start].isspace() or state.src[end - 1].isspace():
        return False
    if not silent:
        outer = state.posMax
        state.pos, state.posMax = start, end
        state.push("spoiler_open", "", 1).meta["at"] = start - 2
        state.md.inline.tokenize(state)
        state.push("spoiler_close", "", -1)
        state.posMax = outer
    state.pos = end + 2
    return True
