"""The command ``shardproof``: errors become one sentence, and exit codes.

Exit codes: 0 an answer, 1 proven infeasible, 2 bad input, 130 interrupted. Nothing
heavy is imported before it is known that a command needs it.
"""

from __future__ import annotations

import os
import sys
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
    # A name that the terminal's encoding lacks must not end in a traceback.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = OK
    try:
        code = _run(words or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has left (`| head`): say nothing, and nothing at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        print("shardproof: interrupted", file=sys.stderr)
    return code


def _run(words: list[str]) -> int:
    from ..models.errors import InputError
    from .app import app

    try:
        work = app(words, prog_name="shardproof", standalone_mode=False)
        return work() if callable(work) else int(work or OK)
    except InputError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _refuse(f"{error.filename or 'a file'}: {error.strerror or error}")
    except Exception as error:
        # Typer's own usage errors; their class moved between its releases.
        shown = getattr(error, "format_message", None)
        if shown is None:
            raise
        return _refuse(shown())


def _refuse(message: str) -> int:
    sentence = " ".join(message.split())
    if len(sentence) > _LONGEST:
        sentence = sentence[: _LONGEST - 3] + "..."
    print(f"shardproof: {sentence}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
