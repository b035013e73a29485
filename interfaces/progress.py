"""A progress bar for long work, on standard error and only for a person."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

#: Work shorter than this shows nothing, in seconds.
PATIENCE = 2.0


class Progress:
    """Called with what is being done, how much of it is, and how much there is.

    Nothing is drawn, and rich is not imported, unless standard error is a terminal
    and the work has taken longer than ``PATIENCE``.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        """Start the clock."""
        self._wanted = wanted and sys.stderr.isatty()
        self._since = time.monotonic()
        self._bar: RichProgress | None = None
        self._stages: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` steps of a stage are finished."""
        if not self._wanted or time.monotonic() - self._since < PATIENCE:
            return
        if self._bar is None:
            self._bar = _bar()
            self._bar.start()
        if stage not in self._stages:
            self._stages[stage] = self._bar.add_task(stage, total=total)
        self._bar.update(self._stages[stage], completed=done, total=total)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the bar away, also after an error."""
        if self._bar is not None:
            self._bar.stop()


def _bar() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
