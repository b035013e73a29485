"""Tables: drawn on a terminal, plain aligned text everywhere else."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A column that may fold is not folded to less than this, in characters.
_FOLDED = 16
Align = Literal["left", "right"]


@dataclass(frozen=True)
class Column:
    """A heading, and the side on which its cells stand; ``wrap`` lets it fold."""

    title: str
    align: Align = "right"
    wrap: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text under headings."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def plain(self) -> str:
        """Write aligned text without colours or lines."""
        titles = tuple(c.title for c in self.columns)
        lines = (titles, *self.rows)
        width = [max(len(row[i]) for row in lines) for i in range(len(titles))]
        text = "\n".join(self._line(row, width) for row in lines)
        return f"{self.title}\n{text}" if self.title else text

    def _line(self, row: Sequence[str], width: Sequence[int]) -> str:
        cells = [
            cell.rjust(size) if column.align == "right" else cell.ljust(size)
            for cell, size, column in zip(row, width, self.columns, strict=True)
        ]
        return "  ".join(cells).rstrip()

    def width(self) -> int:
        """Return the least width at which no cell is cut, in characters."""
        least = 0
        for i, column in enumerate(self.columns):
            size = max(len(text) for text in (column.title, *(r[i] for r in self.rows)))
            least += min(size, _FOLDED) if column.wrap else size
        return least + 2 * len(self.columns)

    def narrowed(self, width: int) -> tuple[Table, str]:
        """Drop columns that say the same in every row, if there is too little room.

        Parameters
        ----------
        width
            Characters of a line.

        Returns
        -------
        Table
            What is left.
        str
            What was dropped, in words; empty if everything fits.
        """
        if self.width() <= width or len(self.rows) < 2:
            return self, ""
        same = [len({row[i] for row in self.rows}) == 1 for i in range(len(self))]
        if all(same) or not any(same):
            return self, ""
        kept = [i for i in range(len(self)) if not same[i]]
        dropped = [
            f"{self.columns[i].title} {self.rows[0][i]}"
            for i in range(len(self))
            if same[i]
        ]
        table = Table(
            tuple(self.columns[i] for i in kept),
            tuple(tuple(row[i] for i in kept) for row in self.rows),
            self.title,
        )
        return table, f"in every row: {', '.join(dropped)}"

    def stacked(self, width: int) -> str:
        """Write each row as a paragraph, for lines too short for a table."""
        titles = [c.title for c in self.columns]
        paragraphs = []
        for number, row in enumerate(self.rows, start=1):
            cells = [f"{t} {c}" for t, c in zip(titles, row, strict=True) if c]
            paragraphs.append(
                fill(
                    ", ".join(cells),
                    width=width,
                    initial_indent=f"{number:>2}  ",
                    subsequent_indent="    ",
                )
            )
        return "\n".join(paragraphs)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)


def show(table: Table) -> None:
    """Print a table to standard output, drawn if that is a terminal."""
    if not sys.stdout.isatty():
        print(table.plain())
        return
    from rich.console import Console

    console = Console(highlight=False)
    if table.title:
        console.print(table.title, markup=False)
    narrow, dropped = table.narrowed(console.width)
    if narrow.width() <= console.width:
        console.print(_drawn(narrow))
    else:
        console.print(narrow.stacked(console.width), markup=False)
    if dropped:
        console.print(dropped, markup=False)


def say(text: str) -> None:
    """Print lines of text, folded between words if standard output is a terminal."""
    if not sys.stdout.isatty():
        print(text)
        return
    width = get_terminal_size().columns
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        print(fill(line, width, subsequent_indent=indent) if line else "")


def _drawn(table: Table) -> object:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in table.columns:
        overflow: Literal["fold", "ellipsis"] = "fold" if column.wrap else "ellipsis"
        drawn.add_column(
            column.title,
            justify=column.align,
            no_wrap=not column.wrap,
            overflow=overflow,
        )
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn
