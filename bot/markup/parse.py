"""Markdown as models write it, read into styled runs; and where such a text may be cut.

`bot.markup.render` imports it on the first reply, since markdown-it-py takes some 20 ms to load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bot.markup.runs import CutPlace, Run, Style, Styles, TextMark, columns_of, poses

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


def _maths(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = _MATHS.match(state.src, state.pos, state.posMax)
    return found is not None and _whole(state, found.end(), silent)


def _address(state: StateInline, silent: bool) -> bool:
    """A bare address, so that "_" and "*" in it are not taken for emphasis."""
    if state.src[state.pos] != ":" or not state.src.startswith("://", state.pos):
        return False
    scheme = _URL_HEAD.search(state.src[max(0, state.pos - 8) : state.pos])
    found = _URL_REST.match(state.src, state.pos, state.posMax)
    if scheme is None or found is None:
        return False
    address = found[0].rstrip(_URL_TAIL)
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(_URL_TAIL)
    if len(address) <= 3:
        return False
    end = state.pos + len(address)
    if not silent and state.pending.endswith(scheme[0]):
        # Letters of no meaning so far: they are taken back, and belong to the address.
        state.pending = state.pending.removesuffix(scheme[0])
        state.pos -= len(scheme[0])
    return _whole(state, end, silent)


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
        state.push("spoiler_open", "", 1)
        state.md.inline.tokenize(state)
        state.push("spoiler_close", "", -1)
        state.posMax = outer
    state.pos = end + 2
    return True


# --- reading ------------------------------------------------------------------------------------

MARKS_MAX = 4_000  # so many marks are an attack or an accident, and slow to match
INDENT_MAX = 12  # spaces before a nested item: a phone is narrow
COLUMN_MAX = 40  # columns to which a table's cells are padded; wider cells stick out

_MARKS = re.compile(r"[\[\]*_~`>|!<($#\\\n-]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
_STYLES = {
    "strong_open": TextMark.BOLD,
    "em_open": TextMark.ITALIC,
    "s_open": TextMark.STRIKE,
    "spoiler_open": TextMark.SPOILER,
}
_BOXES = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
_RULE = "—" * 8


def read(source: str, can_link: Callable[[str], bool]) -> list[Run]:
    """Return all that is shown of a text whose lines end in LF, in order. A link that `can_link`
    refuses, or whose words name another host, has its address written out. Blocks nested too deep,
    or too many marks, make it plain. Reference definitions are text: a chat shows what was written.
    """
    tokens = _tokens(source)
    if tokens is None:
        return [(source, ())]
    reader = _RunReader(source, tokens, can_link)
    reader.blocks("", (), "")
    return reader.runs


@lru_cache(maxsize=16)  # a text is read, cut and read again
def _tokens(source: str) -> Sequence[Token] | None:
    if len(_MARKS.findall(source)) > MARKS_MAX:
        return None
    tokens = parser().parse(source, {})
    return None if any(token.level >= LEVELS_MAX - 2 for token in tokens) else tokens


class _RunReader:
    """Writes block tokens as runs, from left to right."""

    def __init__(
        self, source: str, tokens: Sequence[Token], can_link: Callable[[str], bool]
    ) -> None:
        self.runs: list[Run] = []
        self._lines = source.split("\n")
        self._tokens = tokens
        self._can_link = can_link
        self._next = 0
        self._number = 0
        self._at_marker = False
        """Whether a list item's bullet was written, and nothing after it."""

    def blocks(self, until: str, styles: Styles, indent: str) -> None:
        is_first = True
        while self._next < len(self._tokens) and (token := self._take()).type != until:
            if not is_first:
                self._gap(token, styles)
                if token.type in {"paragraph_open", "heading_open", "hr"}:
                    self._write(indent, styles)
            is_first = False
            self._block(token, styles, indent)

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _write(self, text: str, styles: Styles) -> None:
        if text:
            self.runs.append((text, styles))
            self._at_marker = False

    def _gap(self, token: Token, styles: Styles) -> None:
        """Between blocks, a blank line where there is one in the source."""
        line = token.map[0] if token.map else 0
        is_spaced = line > 0 and not self._lines[line - 1].strip("> \t")
        if self.runs:
            self._write("\n\n" if is_spaced else "\n", styles)

    def _wear(self, styles: Styles, mark: TextMark, value: str = "") -> Styles:
        """A style inside the same style is no second one."""
        if any(style.mark is mark for style in styles):
            return styles
        if mark not in _STYLES.values():
            self._number += 1
            return (*styles, Style(mark=mark, value=value, number=self._number))
        return (*styles, Style(mark=mark))

    def _block(self, token: Token, styles: Styles, indent: str) -> None:
        match token.type:
            case "fence" | "code_block":
                found = _LANGUAGE.match(token.info.strip())
                language = found[0] if found else ""
                code = self._wear(styles, TextMark.PRE, language)
                self._write(token.content.removesuffix("\n"), code)
            case "blockquote_open":
                self.blocks("blockquote_close", self._wear(styles, TextMark.QUOTE), "")
            case "bullet_list_open" | "ordered_list_open":
                self._list(styles, indent)
            case "table_open":
                self._table(self._wear(styles, TextMark.PRE))
            case "hr":
                self._write(_RULE, styles)
            case _:
                if token.type == "heading_open":
                    styles = self._wear(styles, TextMark.BOLD)
                self._inline(self._take().children or (), styles, indent)
                self._take()

    def _list(self, styles: Styles, indent: str) -> None:
        is_first = True
        while (token := self._take()).type == "list_item_open":
            if not is_first:
                self._gap(token, styles)
            is_first = False
            here = "" if self._at_marker else indent  # a list that begins an item
            marker = self._box() or (f"{token.info}{token.markup}" if token.info else "•")
            self._write(f"{here}{marker} ", styles)
            self._at_marker = True
            self.blocks("list_item_close", styles, (here + " " * 3)[:INDENT_MAX])
            self._at_marker = False

    def _box(self) -> str:
        """The sign of a task that is open or done, in place of the words that say so."""
        if self._tokens[self._next].type != "paragraph_open":
            return ""
        words = self._tokens[self._next + 1].children or ()
        text = words[0].content if words and words[0].type == "text" else ""
        return _BOXES.get(text[:4], "") if len(text) > 4 else ""

    def _inline(self, tokens: Sequence[Token], styles: Styles, indent: str) -> None:
        worn = [styles]
        links: list[tuple[int, str]] = []
        is_task = self._at_marker and self.runs[-1][0].strip() in _BOXES.values()
        for number, token in enumerate(tokens):
            now = worn[-1]
            match token.type:
                case "softbreak" | "hardbreak":
                    self._write(f"\n{indent}", now)
                case "code_inline":
                    self._write(token.content, self._wear(now, TextMark.CODE))
                case "whole":
                    self._write(token.content, self._wear(now, TextMark.WHOLE))
                case "image":
                    url, start = str(token.attrs["src"]), len(self.runs)
                    linked = self._wear(now, TextMark.LINK, url)
                    self._write(token.content.replace("\n", " ").strip(), linked)
                    self._end_link(start, url, linked)
                case "link_open":
                    links.append((len(self.runs), str(token.attrs.get("href", ""))))
                    worn.append(self._wear(now, TextMark.LINK, links[-1][1]))
                case "link_close":
                    worn.pop()
                    self._end_link(*links.pop(), now)
                case _ if token.type in _STYLES:
                    worn.append(self._wear(now, _STYLES[token.type]))
                case _ if token.nesting < 0:
                    worn.pop()
                case _:
                    text = token.content[4:] if is_task and number == 0 else token.content
                    self._write(text, now)

    def _end_link(self, start: int, url: str, linked: Styles) -> None:
        """Write an address for its words where there are none, and behind them where they cannot
        be its link."""
        if len(self.runs) == start:
            self._write(url, linked)
        label = "".join(text for text, _ in self.runs[start:])
        if self._can_link(url) and not poses(label.replace("\n", " "), url):
            return

        def bare(styles: Styles) -> Styles:
            return tuple(one for one in styles if (one.mark, one.value) != (TextMark.LINK, url))

        self.runs[start:] = [(text, bare(styles)) for text, styles in self.runs[start:]]
        if label not in (url, url.removeprefix("mailto:")):
            self._write(f" ({url})", bare(linked))

    def _table(self, styles: Styles) -> None:
        rows: list[list[str]] = []
        while (token := self._take()).type != "table_close":
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_cell(token.children or ()))
        widths = [
            min(COLUMN_MAX, max(columns_of(row[column]) for row in rows if column < len(row)))
            for column in range(max(map(len, rows)))
        ]
        lines = [
            " | ".join(
                cell + " " * (width - columns_of(cell))
                for cell, width in zip(row, widths, strict=False)
            ).rstrip()
            for row in rows
        ]
        lines.insert(1, "-+-".join("-" * width for width in widths))
        self._write("\n".join(lines), styles)


def _cell(tokens: Sequence[Token]) -> str:
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


# --- where it may be cut ------------------------------------------------------------------------

LINE, ITEM, BLOCK = 4, 5, 6
"""How good it is to begin a new message with a line, an item, a block; less is poorer."""

INSIDE = 10
"""Divides that worth inside of a code block or table that would fit into one message."""


def cut_lines(source: str, *, block_max: int) -> list[CutPlace]:
    """Return the begin of each line as a place, or none where all is plain; blocks of at most
    `block_max` characters should stay whole."""
    if (tokens := _tokens(source)) is None:
        return []
    lines = source.split("\n")
    found = [CutPlace(worth=LINE) for _ in lines]
    heading_end = -1
    for token in tokens:
        if token.map is None or token.type in {"inline", "thead_open", "tbody_open", "tr_open"}:
            continue
        first, end = token.map
        begins = found[first]
        # A heading stays with what it heads.
        worth = max(begins.worth, ITEM if token.level else BLOCK)
        begins.worth = LINE - 1 if first == heading_end else worth
        begins.is_sure = True
        match token.type:
            case "heading_open":
                for line in found[first + 1 : end]:
                    line.worth = 0  # what underlines it, too
                heading_end = end
                while heading_end < len(lines) and not lines[heading_end].strip():
                    heading_end += 1
            case "blockquote_open":
                for line in found[first:end]:
                    line.quote = "> "
            case "list_item_open":
                for line in found[first:end]:
                    line.in_list = True
            case "fence" | "table_open" | "code_block":
                _hold(found[first:end], token, lines[first:end], block_max=block_max)
    return found


def _hold(held: Sequence[CutPlace], token: Token, lines: Sequence[str], *, block_max: int) -> None:
    """Say of the lines of a block of code, or of a table, how the rest is opened anew."""
    first, *inner = held
    carry, indent = "", 0
    if token.type == "fence":
        carry = f"{first.quote}{token.markup}{token.info}\n"
        indent = max(lines[0].find(token.markup), 0)
    elif token.type == "table_open":
        carry = "".join(f"{line}\n" for line in lines[:2])
    first.is_held = sum(map(len, lines)) + len(lines) <= block_max
    for line in inner:
        line.is_held = first.is_held
        line.worth = LINE / INSIDE if line.is_held else LINE
        line.carry, line.indent, line.in_fence = carry, indent, token.type == "fence"
        # Code that is indented has no mark that could be written anew inside of a list.
        line.is_sure = token.type != "code_block" or not token.level
        if line.in_fence:
            line.quote = carry + first.quote
    if token.type == "table_open" and inner:
        inner[0].is_sure = False  # the line below the header
