"""Draws chats as SVG: panels side by side, with bubbles, cards, posts and terminals in them.

Light and dark follow the reader's system. Called by `docs.make_pictures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never
from xml.sax.saxutils import escape

from docs.pictures.lines import (
    MONO_EM,
    MONO_SIZE,
    SIZE,
    SMALL_SIZE,
    Line,
    cut,
    line_width,
    lines_of,
)
from docs.pictures.shapes import (
    Aside,
    Block,
    Bubble,
    Button,
    Item,
    Panel,
    Paragraph,
    Post,
    Shell,
    Span,
    told,
)

GAP, EDGE = 16, 12
TITLE_SIZE, LINE = 13, 18


def picture(title: str, panels: Sequence[Panel]) -> str:
    """A whole SVG; its description tells all that is written in it, for who cannot see it."""
    drawn = [_Sheet(panel.width) for panel in panels]
    for sheet, panel in zip(drawn, panels, strict=True):
        for item in panel.items:
            sheet.draw(item)
    height = max(sheet.y for sheet in drawn) + EDGE
    lefts = [sum(one.width + GAP for one in panels[:number]) for number in range(len(panels))]
    width = lefts[-1] + panels[-1].width
    shown = [
        _panel(panel, sheet, left=left, height=height)
        for panel, sheet, left in zip(panels, drawn, lefts, strict=True)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
            f'width="{width}" height="{height:g}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(told(panels))}</desc>',
            f"<style>{_STYLE}</style>",
            *shown,
            "</svg>\n",
        ]
    )


class _Sheet:
    """What is drawn in one panel, and how far down it goes."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.parts: list[str] = []
        self.y = 44.0

    def draw(self, item: Item) -> None:
        match item:
            case Bubble():
                self._bubble(item)
            case Post():
                self._post(item)
            case Block():
                self._block(item)
            case Shell():
                self._shell(item)
            case Aside():
                self._aside(item)
            case _ as never:
                assert_never(never)

    def _bubble(self, bubble: Bubble) -> None:
        most = self._width - 2 * EDGE - 28
        lines = lines_of(bubble.text, most - 22)
        widest = max((line_width(line) for line in lines), default=0)
        least = 240 if bubble.rows else 40
        width = min(most, max(least, widest + 22))
        height = len(lines) * LINE + 14
        left = EDGE if bubble.is_bot else self._width - EDGE - width
        self._box("bot" if bubble.is_bot else "ann", left, width, height)
        self._write(lines, left + 11, self.y + 18)
        self.y += height + 4
        for row in bubble.rows:
            self._buttons(row, left, width)
        self.y += 6

    def _post(self, post: Post) -> None:
        left = EDGE + (26 if post.is_reply else 0)
        lines = lines_of(post.text, self._width - left - EDGE - 40)
        letter = "H" if post.is_bot else "A"
        self.parts += [
            f'<rect class="{"face" if post.is_bot else "face2"}" x="{left}" y="{self.y:g}" '
            'width="28" height="28" rx="6"/>',
            f'<text class="letter" x="{left + 14}" y="{self.y + 19:g}">{letter}</text>',
        ]
        name = [Span(text=post.who, look="b")]
        if post.is_bot:
            name.append(Span(text="  APP", look="q"))
        self._write([(name, SIZE)], left + 38, self.y + 11)
        self._write(lines, left + 38, self.y + 11 + LINE)
        self.y += (len(lines) + 1) * LINE + 2
        for row in post.rows:
            self._buttons(row, left + 38, min(230, self._width - left - 38 - EDGE))
        self.y += 10

    def _block(self, block: Block) -> None:
        width = self._width - 2 * EDGE
        if block.is_header:
            self.y += 6
        lines = lines_of(block.text, width)
        if block.is_header:
            lines = [([Span(text=s.text, look="b") for s in line], SIZE + 2) for line, _ in lines]
        self._write(lines, EDGE, self.y + 13)
        self.y += len(lines) * LINE + 4
        for row in block.rows:
            self._buttons(row, EDGE, 64.0 + 5 * max(len(b.text) for b in row) * len(row))
        self.y += 2

    def _shell(self, shell: Shell) -> None:
        width = self._width - 2 * EDGE
        fits = int((width - 20) / (MONO_SIZE * MONO_EM))
        heading = shell.heading if shell.is_file else f"$ {shell.heading}"
        rows = [(piece, "shb") for piece in cut(heading, fits)]
        rows += [(piece, "sh") for line in shell.lines for piece in cut(line, fits)]
        height = len(rows) * 16 + 14
        kind = "file" if shell.is_file else "shell"
        self._box(kind, EDGE, width, height)
        for number, (text, look) in enumerate(rows):
            y = self.y + 18 + number * 16
            self.parts.append(
                f'<text class="{look} on{kind}" xml:space="preserve" x="{EDGE + 10}" y="{y:g}">'
                f"{escape(text)}</text>"
            )
        self.y += height + 10

    def _aside(self, aside: Aside) -> None:
        width = self._width - 2 * EDGE - 40
        lines = lines_of((Paragraph(spans=(Span(text=aside.text),)),), width, size=SMALL_SIZE)
        height = len(lines) * 15 + 9
        self._box("alarm" if aside.alarm else "aside", EDGE + 10, width + 20, height, round_=10)
        for number, (line, _) in enumerate(lines):
            words = escape("".join(span.text for span in line))
            self.parts.append(
                f'<text class="note" x="{self._width / 2:g}" y="{self.y + 15 + number * 15:g}">'
                f"{words}</text>"
            )
        self.y += height + 10

    def _buttons(self, row: Sequence[Button], left: float, width: float) -> None:
        each = (width - 4 * (len(row) - 1)) / len(row)
        for number, button in enumerate(row):
            x = left + number * (each + 4)
            look = f"btn {button.look}".strip()
            self.parts += [
                f'<rect class="{look}" x="{x:g}" y="{self.y:g}" width="{each:g}" height="28" '
                'rx="7"/>',
                f'<text class="label" x="{x + each / 2:g}" y="{self.y + 18.5:g}">'
                f"{escape(button.text)}</text>",
            ]
            if button.pressed:
                self.parts.append(
                    f'<circle class="tap" cx="{x + each - 14:g}" cy="{self.y + 19:g}" r="11"/>'
                )
        self.y += 32

    def _box(
        self, kind: str, left: float, width: float, height: float, *, round_: int = 12
    ) -> None:
        self.parts.append(
            f'<rect class="{kind}" x="{left:g}" y="{self.y:g}" width="{width:g}" '
            f'height="{height:g}" rx="{round_}"/>'
        )

    def _write(self, lines: Sequence[Line], left: float, y: float) -> None:
        for number, (line, size) in enumerate(lines):
            spans = "".join(_span(span) for span in line)
            bigger = f' font-size="{size}"' if size != SIZE else ""
            self.parts.append(
                f'<text class="t" xml:space="preserve" x="{left:g}" y="{y + number * LINE:g}"'
                f"{bigger}>{spans}</text>"
            )


def _span(span: Span) -> str:
    if not span.look:
        return escape(span.text)
    return f'<tspan class="{" ".join(span.look)}">{escape(span.text)}</tspan>'


def _panel(panel: Panel, sheet: _Sheet, *, left: int, height: float) -> str:
    kind = "white" if panel.is_white else "chat"
    return "\n".join(
        [
            f'<g transform="translate({left} 0)">',
            f'<rect class="{kind}" width="{panel.width}" height="{height:g}" rx="14"/>',
            f'<text class="head" x="{EDGE + 4}" y="26">{escape(panel.title)}</text>',
            *sheet.parts,
            "</g>",
        ]
    )


_LIGHT = {
    ".chat": "fill:#dfe8ee",
    ".white": "fill:#ffffff;stroke:#d0d4d8",
    ".head,.note": "fill:#4a5a66",
    ".bot": "fill:#ffffff",
    ".ann": "fill:#d6f5c8",
    ".t": "fill:#16202a",
    ".t .q": "fill:#5f6f7b",
    ".t .l": "fill:#1264a3",
    ".aside": "fill:#c9d6de",
    ".alarm": "fill:#f7c9c4",
    ".file": "fill:#fbf6e6;stroke:#e2d8b8",
    ".onfile": "fill:#3d3a2c",
    ".btn": "fill:#ffffff;stroke:#b9c7d1",
    ".good": "fill:#e3f6e4;stroke:#7bbf80",
    ".bad": "fill:#fdeceb;stroke:#dd9a94",
    ".label": "fill:#16202a",
}
_DARK = {
    ".chat": "fill:#0e1a24",
    ".white": "fill:#1a1d21;stroke:#3a3f45",
    ".head,.note": "fill:#a9b8c4",
    ".bot": "fill:#1d2b38",
    ".ann": "fill:#2f5a3c",
    ".t": "fill:#eef3f6",
    ".t .q": "fill:#9fb0bd",
    ".t .l": "fill:#6ab6ee",
    ".aside": "fill:#233442",
    ".alarm": "fill:#5f2b27",
    ".file": "fill:#2b2a20;stroke:#4a4733",
    ".onfile": "fill:#ece6cf",
    ".btn": "fill:#1d2b38;stroke:#4a5d6c",
    ".good": "fill:#1f4027;stroke:#4f8f58",
    ".bad": "fill:#47221f;stroke:#9a544d",
    ".label": "fill:#eef3f6",
}


def _rules(looks: dict[str, str]) -> str:
    return "".join(f"{name}{{{look}}}" for name, look in looks.items())


_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    f"'DejaVu Sans',sans-serif;font-size:{SIZE}px;white-space:pre}}"
    f".head{{font-size:{TITLE_SIZE}px;font-weight:600}}"
    f".note{{font-size:{SMALL_SIZE}px;text-anchor:middle}}"
    ".label,.letter{text-anchor:middle;font-weight:500}.letter{fill:#ffffff;font-weight:700}"
    ".b{font-weight:700}.i{font-style:italic}.s{text-decoration:line-through}"
    f".c,.sh,.shb{{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"font-size:{MONO_SIZE}px}}.shb{{font-weight:700}}"
    ".shell{fill:#1f2430}.onshell{fill:#e4e8ee}.face{fill:#c2552b}.face2{fill:#4a7a9c}"
    ".tap{fill:#f0a53a;fill-opacity:.55;stroke:#c97f14}"
    + _rules(_LIGHT)
    + f"@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"
)
