"""The command ``shardproof``: errors become one sentence, and exit codes.

Exit codes: 0 an answer, 1 proven infeasible, 2 bad input, 130 interrupted. Nothing
heavy is imported before it is known that a command needs it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, INFEASIBLE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_LONGEST = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    argv
        The words behind the program's name; those of the process if None.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    code = OK
    try:
        code = _run(words or ["--help"])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has left (`| head`): say nothing, and nothing at exit either.
        _discard_output()
    if code == INTERRUPTED:
        print("shardproof: interrupted", file=sys.stderr, flush=True)
        if argv is None:
            # An interrupt inside a module's `exec` makes Python kill itself by the
            # signal at exit, handled or not: leave before that, with the code.
            os._exit(code)
    return code


def _run(words: list[str]) -> int:
    from ..models.errors import InputError
    from .app_profiles import app

    try:
        work = app(words, prog_name="shardproof", standalone_mode=False)
        code = work() if callable(work) else int(work or OK)
        sys.stdout.flush()
    except InputError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        return _refuse(f"{error.filename or 'the output'}: {error.strerror or error}")
    except Exception as error:
        # Typer's own usage errors; their class moved between its releases.
        shown = getattr(error, "format_message", None)
        if shown is None:
            raise
        return _refuse(shown())
    return code


def _prepare_streams() -> None:
    """Open what the caller closed, and never fail for a letter."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not end in a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that nothing is said at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(message: str) -> int:
    sentence = " ".join(message.split())
    if len(sentence) > _LONGEST:
        sentence = sentence[: _LONGEST - 3] + "..."
    print(f"shardproof: {sentence}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
