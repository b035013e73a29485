"""Pieces of HTML: everything that comes from a document is escaped here."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..table import Table

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem;
  padding: 0 1rem 3rem; color: #1b1f24; background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; line-height: 1.3; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } .note { color: #57606a; font-size: .9rem; }
table { border-collapse: collapse; font-size: .85rem; overflow-wrap: normal; }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #d8dee4; }
th.left, td.left { text-align: left; } tr:first-child td { font-weight: 600; }
.figure { width: 100%; min-height: 24rem; }
"""


def heading(text: str, level: int = 2) -> str:
    """Return a heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, *, note: bool = False) -> str:
    """Return a paragraph for each line of text."""
    css = ' class="note"' if note else ""
    return "".join(f"<p{css}>{escape(line)}</p>" for line in text.splitlines())


def table(value: Table) -> str:
    """Return a table that scrolls sideways where it is too wide."""
    sides = [' class="left"' if c.align == "left" else "" for c in value.columns]
    head = _cells("th", [c.title for c in value.columns], sides)
    body = "".join(f"<tr>{_cells('td', row, sides)}</tr>" for row in value.rows)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(tag: str, texts: Sequence[str], sides: Sequence[str]) -> str:
    return "".join(
        f"<{tag}{side}>{escape(text)}</{tag}>"
        for text, side in zip(texts, sides, strict=True)
    )


def figure(number: int, spec: dict[str, Any], label: str) -> str:
    """Return a place for a figure, and the script that draws it there."""
    # "</script>" inside a string would end the script.
    text = json.dumps(spec, allow_nan=False).replace("<", "\\u003c")
    return (
        f'<div class="figure" id="f{number}" role="img" '
        f'aria-label="{escape(label, quote=True)}"></div>'
        f"<script>{{const f={text};Plotly.newPlot('f{number}',f.data,f.layout,"
        "{responsive:true,displaylogo:false,displayModeBar:false});}</script>"
    )


def document(title: str, script: str, body: Sequence[str]) -> str:
    """Return the whole page.

    Parameters
    ----------
    title
        Of the window.
    script
        What draws the figures, embedded as it is.
    body
        Pieces of HTML, in order.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f"<script>{script}</script></head><body>{''.join(body)}</body></html>\n"
    )
