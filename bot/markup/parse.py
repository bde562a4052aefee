"""Markdown to the tree of `bot.markup.tree`.

`bot.markup.render` imports it on the first reply, since markdown-it-py takes some 20 ms to load.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from bot.markup.tree import (
    Block,
    Break,
    CodeBlock,
    Heading,
    Inline,
    ListBlock,
    ListItem,
    ParagraphBlock,
    Quote,
    RuleBlock,
    Style,
    Styled,
    TableBlock,
    TableRow,
    TextMark,
    TextRun,
)

# --- markup dialect -----------------------------------------------------------------------------
#
# The Markdown that models write, as a parser: the rules added to markdown-it-py.
#
# On top of CommonMark with tables and strikethrough: ||spoilers||, and formulas, bare addresses and
# names like `__init__.py` that are kept as they stand. No raw HTML, no reference definitions.
# linkify-it is not used: chat platforms link bare addresses themselves, and its version 2.2 needs
# more than 12 s for 200,000 characters of "http://a/(((".

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


MARKS_MAX = 20_000  # so many marks and lines are an attack or an accident, and slow to match

_MARKS = re.compile(r"[\[\]*_~`>|!<($#\\\n-]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
_STYLES = {
    "strong_open": TextMark.BOLD,
    "em_open": TextMark.ITALIC,
    "s_open": TextMark.STRIKE,
    "spoiler_open": TextMark.SPOILER,
    "link_open": TextMark.LINK,
}


def parse(source: str) -> tuple[Block, ...]:
    """The tree of a text whose lines end in LF; blocks nested too deep, or too many marks, make
    it plain paragraphs. Reference definitions are text here: a chat shows what was written."""
    if len(_MARKS.findall(source)) > MARKS_MAX:
        return plain(source)
    tokens = parser().parse(source, {})
    if any(token.level >= LEVELS_MAX - 2 for token in tokens):
        return plain(source)
    return _Blocks(source, tokens).read()


def plain(source: str) -> tuple[Block, ...]:
    """One paragraph that shows the text as it stands."""
    children: list[Inline] = []
    at = 0
    for line in source.split("\n"):
        if at:
            children.append(Break(lead=at - 1))
        if line:
            children.append(TextRun(text=line, lead=at, at=at))
        at += len(line) + 1
    return (ParagraphBlock(lead=0, spaced=False, children=tuple(children)),)


class _Blocks:
    """Reads the flat list of block tokens into blocks, from left to right."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._lines = source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._tokens = tokens
        self._next = 0

    def read(self, until: str = "") -> tuple[Block, ...]:
        blocks = []
        while self._next < len(self._tokens):
            token = self._take()
            if token.type == until:
                break
            blocks.append(self._block(token))
        return tuple(blocks)

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _block(self, token: Token) -> Block:
        first = _first_line(token)
        lead, spaced = self._starts[first], self._spaced(first)
        match token.type:
            case "heading_open":
                return Heading(lead=lead, spaced=spaced, children=self._inline())
            case "fence" | "code_block":
                lines = tuple(self._code(token, first))
                found = _LANGUAGE.match(token.info.strip())
                language = found[0] if found else ""
                return CodeBlock(lead=lead, spaced=spaced, language=language, lines=lines)
            case "blockquote_open":
                children = self.read("blockquote_close")
                return Quote(lead=lead, spaced=spaced, children=children)
            case "bullet_list_open" | "ordered_list_open":
                return ListBlock(lead=lead, spaced=spaced, items=tuple(self._items()))
            case "table_open":
                return TableBlock(lead=lead, spaced=spaced, rows=tuple(self._rows()))
            case "hr":
                return RuleBlock(lead=lead, spaced=spaced)
            case _:
                return ParagraphBlock(lead=lead, spaced=spaced, children=self._inline())

    def _spaced(self, line: int) -> bool:
        return line > 0 and not self._lines[line - 1].strip("> \t")

    def _inline(self) -> tuple[Inline, ...]:
        token = self._take()
        self._take()
        place = _SourcePositions(token.content, self._lines, self._starts, _first_line(token))
        return _read_inline(token.children or [], place)

    def _code(self, token: Token, first: int) -> Iterator[TextRun]:
        lines = token.content.removesuffix("\n").split("\n") if token.content else []
        opening = first + (token.type == "fence")
        for number, line in enumerate(lines, opening):
            start, raw = self._starts[number], self._lines[number]
            at = start + len(raw) - len(line) if raw.endswith(line) else None
            ending = "\n" if number - opening < len(lines) - 1 else ""
            lead = start if number > opening else self._starts[first]
            yield TextRun(text=line + ending, lead=lead, at=at)

    def _items(self) -> Iterator[ListItem]:
        while (token := self._take()).type == "list_item_open":
            first = _first_line(token)
            children = self.read("list_item_close")
            marker = f"{token.info}{token.markup}" if token.info else "•"
            marker, children = _task(marker, children)
            yield ListItem(
                lead=self._starts[first],
                spaced=self._spaced(first),
                marker=marker,
                children=children,
            )

    def _rows(self) -> Iterator[TableRow]:
        cells: list[str] = []
        lead = 0
        while (token := self._take()).type != "table_close":
            if token.type == "tr_open":
                cells, lead = [], self._starts[_first_line(token)]
            elif token.type == "inline":
                cells.append(_cell(token.children or []))
            elif token.type == "tr_close":
                yield TableRow(lead=lead, cells=tuple(cells))


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _task(marker: str, children: tuple[Block, ...]) -> tuple[str, tuple[Block, ...]]:
    match children:
        case (
            ParagraphBlock(children=(TextRun(text=text, at=int(at)) as words, *more)) as first,
            *rest,
        ):
            box = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}.get(text[:4])
            if box and len(text) > 4:
                head = TextRun(text=text[4:], lead=words.lead, at=at + 4)
                body = ParagraphBlock(lead=first.lead, spaced=first.spaced, children=(head, *more))
                return box, (body, *rest)
    return marker, children


def _cell(tokens: list[Token]) -> str:
    """A table cell as plain text; the address of a link follows it, since code takes no links."""
    shown: list[str] = []
    links: list[tuple[str, int]] = []
    for token in tokens:
        if token.type == "link_open":
            links.append((str(token.attrs.get("href", "")), len(shown)))
        elif token.type == "link_close" and links:
            url, start = links.pop()
            label = "".join(shown[start:])
            if label not in (url, url.removeprefix("mailto:")):
                shown.append(f" ({url})" if label else url)
        elif token.type == "image":
            shown.append(f"{token.content} ({token.attrs['src']})")
        else:
            shown.append(token.content)
    return "".join(shown).replace("\n", " ")


class _SourcePositions:
    """From a position in a block's text (marks and indents of its lines cut off) to the source."""

    def __init__(self, text: str, lines: list[str], starts: list[int], first: int) -> None:
        self.text = text
        self._begins: list[int] = []
        self._bases: list[int] = []
        self._line_starts: list[int] = []
        begin = 0
        for number, line in enumerate(text.split("\n"), first):
            raw, core = lines[number], line.strip()
            found = raw.rfind(core) if number > first or "\n" in text else raw.find(core)
            indent = len(line) - len(line.lstrip())
            self._begins.append(begin)
            self._bases.append(starts[number] + max(found, 0) - indent)
            self._line_starts.append(starts[number])
            begin += len(line) + 1

    def source(self, position: int) -> int:
        line = bisect_right(self._begins, position) - 1
        return self._bases[line] + position - self._begins[line]

    def line_start(self, position: int) -> int:
        return self._line_starts[bisect_right(self._begins, position) - 1]

    def words(self, text: str, position: int, lead: int | None) -> Iterator[TextRun]:
        """A literal text that may run over lines, a piece for each line."""
        while text:
            cut = self.text.find("\n", position, position + len(text)) + 1
            size = cut - position if cut else len(text)
            at = self.source(position)
            yield TextRun(text=text[:size], lead=at if lead is None else lead, at=at)
            text, position = text[size:], position + size
            lead = self.line_start(position) if text else None


def _read_inline(tokens: list[Token], place: _SourcePositions) -> tuple[Inline, ...]:
    reader = _InlineReader(place)
    for token in tokens:
        reader.feed(token)
    return reader.children()


class _InlineReader:
    """Builds the inline tree; a style inside the same style is no second one, so depth is small."""

    def __init__(self, place: _SourcePositions) -> None:
        self._place = place
        self._levels: list[list[Inline]] = [[]]
        self._open: list[Style | None] = []
        self._lead: int | None = None  # where marks began that belong to the next words

    def children(self) -> tuple[Inline, ...]:
        while self._open:
            self._close()
        return tuple(self._levels[0])

    def feed(self, token: Token) -> None:
        at = int(token.meta.get("at", 0))
        if token.type in _STYLES:
            self._start(token, at)
        elif token.nesting < 0:
            self._close()
        elif token.type in ("softbreak", "hardbreak"):
            self._levels[-1].append(Break(lead=self._place.source(at)))
            begun = self._place.text.find("\n", at) + 1
            self._lead = self._place.line_start(begun) if begun else None
        elif token.type == "image":
            self._image(token, at)
        elif token.type == "code_inline":
            self._code(token, at)
        elif token.type == "whole":
            words = self._words(token.content, at)
            self._levels[-1].append(Styled(style=Style(mark=TextMark.WHOLE), children=words))
        elif token.type == "text":
            self._levels[-1].extend(self._words(token.content, at))
        elif token.content:
            self._levels[-1].append(self._made(token.content, at))

    def _words(self, text: str, at: int) -> tuple[TextRun, ...]:
        lead = self._lead
        if text:
            self._lead = None
        return tuple(self._place.words(text, at, lead))

    def _made(self, text: str, at: int) -> TextRun:
        lead = self._place.source(at) if self._lead is None else self._lead
        self._lead = None
        return TextRun(text=text, lead=lead, at=None)

    def _start(self, token: Token, at: int) -> None:
        mark = _STYLES[token.type]
        if self._lead is None:
            self._lead = self._place.source(at - (mark is TextMark.BOLD))
        if any(style and style.mark is mark for style in self._open):
            self._open.append(None)
            return
        url = str(token.attrs.get("href", ""))
        self._open.append(Style(mark=mark, value=url, at=self._place.source(at) if url else -1))
        self._levels.append([])

    def _close(self) -> None:
        style = self._open.pop()
        if style is None:
            return
        children = self._levels.pop()
        if style.mark is TextMark.LINK and not children:
            lead = style.at if self._lead is None else self._lead
            children = [TextRun(text=style.value, lead=lead, at=None)]
            self._lead = None
        if children:
            self._levels[-1].append(Styled(style=style, children=tuple(children)))

    def _image(self, token: Token, at: int) -> None:
        url = str(token.attrs["src"])
        words = self._made(token.content.replace("\n", " ").strip() or url, at)
        style = Style(mark=TextMark.LINK, value=url, at=words.lead)
        self._levels[-1].append(Styled(style=style, children=(words,)))

    def _code(self, token: Token, at: int) -> None:
        text, begin = self._place.text, at + len(token.markup)
        padded = text[begin : begin + len(token.content) + 2].replace("\n", " ")
        if padded == f" {token.content} " and text.startswith(token.markup, begin + len(padded)):
            begin += 1
        lead = self._place.source(at) if self._lead is None else self._lead
        self._lead = None
        words = tuple(self._place.words(token.content, begin, lead))
        style = Style(mark=TextMark.CODE, at=lead)
        self._levels[-1].append(Styled(style=style, children=words))
