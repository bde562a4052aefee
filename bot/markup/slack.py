"""The flow of a reply as Slack's mrkdwn (https://docs.slack.dev/messaging/formatting-message-text).

mrkdwn has no way to escape its marks, and takes them for marks only at the edge of a word. So a
zero-width space stands where an edge is missing, and behind a mark that is meant as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.markup.runs import Run, Style, Styles, TextMark, shared

EDGE = "\u200b"

_MARKS = {TextMark.BOLD: "*", TextMark.ITALIC: "_", TextMark.STRIKE: "~", TextMark.CODE: "`"}
_FENCE = "```"
_BEFORE = frozenset(" \t\xa0([{\"'“‘«" + EDGE)
_AFTER = frozenset(" \t\xa0)]}\"'”’».,;:!?…" + EDGE)
_LINK = re.compile(r"(?:https?://|mailto:)[^\s]", re.I)
_WEB = re.compile(r"https?://\S+", re.I)
_SPACED = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)
_IN_URL = str.maketrans({"|": "%7C", "<": "%3C", ">": "%3E", '"': "%22", " ": "%20"})


def can_link(url: str) -> bool:
    return _LINK.match(url) is not None


def allowed(styles: Styles) -> Styles:
    """Code holds no other mark; the words of a link are shown as they are, so what stands inside
    it gives way. Slack cannot hide a spoiler, and puts no code block into a quotation."""
    marks = [style.mark for style in styles]
    if TextMark.PRE in marks:
        kept = {TextMark.PRE}
    elif TextMark.LINK in marks:
        styles = styles[: marks.index(TextMark.LINK) + 1]
        kept = {TextMark.QUOTE, TextMark.BOLD, TextMark.ITALIC, TextMark.STRIKE, TextMark.LINK}
    elif TextMark.CODE in marks:
        kept = {TextMark.QUOTE, TextMark.CODE}
    else:
        kept = {TextMark.QUOTE, TextMark.BOLD, TextMark.ITALIC, TextMark.STRIKE, TextMark.WHOLE}
    return tuple(style for style in styles if style.mark in kept)


def escaped(text: str) -> str:
    """Plain text in which Slack finds neither a link nor somebody to call."""
    text = text.replace("\x01", "") if "\x01" in text else text
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(runs: Sequence[Run]) -> str:
    """Lines of mrkdwn; no mark reaches over the end of a line."""
    writer = _MrkdwnWriter()
    for text, styles in runs:
        writer.feed(text, allowed(styles))
    return writer.whole()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Atom:
    """White space, or words without any at their ends, on one line."""

    text: str
    styles: Styles

    @property
    def is_space(self) -> bool:
        return not self.text.strip()

    def wears(self, mark: TextMark) -> bool:
        return any(style.mark is mark for style in self.styles)


class _MrkdwnWriter:
    """Puts lines together: quoted ones, those of code blocks, and all others."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._line: list[_Atom] = []
        self._pre: Style | None = None

    def feed(self, text: str, styles: Styles) -> None:
        pre = next((style for style in styles if style.mark is TextMark.PRE), None)
        if pre != self._pre:
            self._end_pre()
            self._pre = pre
            if pre is not None:
                if self._line:
                    self._end_line(quoted=False)
                elif self._out and not self._out[-1].endswith("\n"):
                    self._out.append("\n")
                self._out.append(f"{_FENCE}\n")
        if pre is not None:
            self._out.append(escaped(text).replace(_FENCE, f"`{EDGE}`{EDGE}`"))
            return
        is_behind_code = not self._line and self._out[-1:] == [_FENCE]
        if is_behind_code and text and not text.startswith("\n"):
            self._out.append("\n")
        quoted = any(style.mark is TextMark.QUOTE for style in styles)
        worn = tuple(style for style in styles if style.mark is not TextMark.QUOTE)
        *lines, last = text.split("\n")
        for line in lines:
            self._add(line, worn, quoted)
            self._end_line(quoted=quoted)
        self._add(last, worn, quoted)

    def whole(self) -> str:
        self._end_pre()
        if self._line:
            self._flush(quoted=False)
        return "".join(self._out)

    def _add(self, text: str, styles: Styles, quoted: bool) -> None:
        where = (Style(mark=TextMark.QUOTE),) if quoted else ()
        for atom in _atoms(text, styles):
            self._line.append(_Atom(text=atom.text, styles=(*where, *atom.styles)))

    def _end_line(self, *, quoted: bool) -> None:
        self._flush(quoted=quoted)
        self._out.append("\n")

    def _flush(self, *, quoted: bool) -> None:
        if self._line:
            quoted = any(atom.wears(TextMark.QUOTE) for atom in self._line)
        bare = [
            _Atom(text=a.text, styles=tuple(s for s in a.styles if s.mark is not TextMark.QUOTE))
            for a in self._line
        ]
        self._line = []
        line = _MrkdwnLine(bare).written()
        if quoted:
            line = f"> {line}"
        elif line.startswith("&gt;"):  # Slack would take it for a quotation
            line = EDGE + line
        self._out.append(line)

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        self._pre = None
        if not self._out[-1].endswith("\n"):
            self._out.append("\n")
        self._out.append(_FENCE)


def _atoms(text: str, styles: Styles) -> Iterator[_Atom]:
    found = _SPACED.fullmatch(text)
    assert found is not None
    for part in found.groups():
        if part:
            yield _Atom(text=part, styles=styles)


class _MrkdwnLine:
    """One line: marks open and close as neighbours differ, and never touch white space inside."""

    def __init__(self, atoms: Sequence[_Atom]) -> None:
        whole: list[_Atom] = []
        for atom in atoms:  # words of one link, and the white space between them, are one label
            if whole and whole[-1].styles == atom.styles and atom.wears(TextMark.LINK):
                whole[-1] = replace(atom, text=whole[-1].text + atom.text)
            else:
                whole.append(atom)
        self._atoms = [self._spaced(whole, number) for number in range(len(whole))]
        literal = "".join(a.text for a in self._atoms if not a.wears(TextMark.CODE))
        self._doubled = {mark for mark in _MARKS.values() if literal.count(mark) > 1}
        self._out = ""
        self._closed = False
        self._open: list[Style] = []

    def written(self) -> str:
        for number, atom in enumerate(self._atoms):
            self._turn_to(tuple(style for style in atom.styles if style.mark in _MARKS))
            following = self._atoms[number + 1].text[0] if number + 1 < len(self._atoms) else ""
            link = next((style for style in atom.styles if style.mark is TextMark.LINK), None)
            if self._closed and atom.text[0] not in _AFTER:
                self._out += EDGE
            self._closed = False
            if link is not None:
                address, label = _address(link.value), escaped(atom.text).replace("|", "¦")
                self._out += f"<{address}>" if label == address else f"<{address}|{label}>"
            elif atom.wears(TextMark.CODE):
                self._out += escaped(atom.text)
            elif atom.wears(TextMark.WHOLE) and _WEB.fullmatch(atom.text):
                self._out += f"<{_address(atom.text)}>"
            else:
                self._out += self._literal(atom.text, following)
        while self._open:
            self._close()
        return self._out

    @staticmethod
    def _spaced(atoms: Sequence[_Atom], number: int) -> _Atom:
        """White space wears what goes on on both sides of it; code that cannot be marked, and an
        address that links itself, wear something else."""
        atom = atoms[number]
        if atom.is_space:
            before = atoms[number - 1].styles if number else ()
            after = atoms[number + 1].styles if number + 1 < len(atoms) else ()
            kept = min(shared(before, atom.styles), shared(atom.styles, after))
            kept_styles = tuple(s for s in atom.styles[:kept] if s.mark is not TextMark.LINK)
            return _Atom(text=atom.text, styles=kept_styles)
        if atom.wears(TextMark.CODE) and "`" in atom.text:
            bare = tuple(style for style in atom.styles if style.mark is not TextMark.CODE)
            return _Atom(text=atom.text, styles=bare)
        # Names such as `__init__` and formulas stay fit to be copied when they are shown as code.
        is_name = atom.wears(TextMark.WHOLE) and not _WEB.fullmatch(atom.text)
        if is_name and "`" not in atom.text and any(mark in atom.text for mark in "*_~"):
            return _Atom(text=atom.text, styles=(Style(mark=TextMark.CODE),))
        return atom

    def _turn_to(self, wanted: Styles) -> None:
        kept = shared(self._open, wanted)
        while len(self._open) > kept:
            self._close()
        if len(wanted) > kept and (self._closed or (self._out and self._out[-1] not in _BEFORE)):
            opened = self._open and self._out.endswith(_MARKS[self._open[-1].mark])
            self._out += "" if opened and not self._closed else EDGE
        for style in wanted[kept:]:
            self._out += _MARKS[style.mark]
            self._open.append(style)
            self._closed = False

    def _close(self) -> None:
        self._out += _MARKS[self._open.pop().mark]
        self._closed = True

    def _literal(self, text: str, following: str) -> str:
        """Words in which no mark is taken for one: a zero-width space parts it from what it would
        mark."""
        if not self._doubled and not self._open:
            return escaped(text)
        open_now = {_MARKS[style.mark] for style in self._open}
        out: list[str] = []
        before = self._out[-1:]
        for place, char in enumerate(text):
            after = text[place + 1] if place + 1 < len(text) else following
            out.append(escaped(char))
            opens = char in self._doubled and not before.isalnum() and after.strip()
            if opens or char in open_now:
                out.append(EDGE)
            before = char
        return "".join(out)


def _address(url: str) -> str:
    return url.translate(_IN_URL).replace("&", "&amp;")
