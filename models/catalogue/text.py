"""Reading users' files: size limits, JSON and YAML, and nothing that surprises.

Whatever a file holds, the result is plain data (mappings, lists, text, numbers, truth
values) or an ``InputError`` of one sentence.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

#: Largest file that is read, in bytes; a config.json has a few thousand.
LARGEST_FILE = 10_000_000
#: Deepest nesting and longest YAML, in parser events, of a model or a cluster.
DEEPEST, MOST_EVENTS = 32, 200_000
YAML_ENDINGS = (".yaml", ".yml")


def brief(value: object, most: int = 60) -> str:
    """Write a value for a message, cut to ``most`` characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most else text[: most - 3] + "..."


def _first_bytes(path: Path) -> bytes | None:
    """Return a regular file's bytes, one more than the limit at most."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(LARGEST_FILE + 1)


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text that is not larger than ``LARGEST_FILE``.

    Raises
    ------
    InputError
        If the file is missing, unreadable, no regular file, too large or no text.
    """
    shown = brief(str(path), 120)
    try:
        content = _first_bytes(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        raise InputError(f"cannot read {shown}: {reason}") from None
    if content is None:
        raise InputError(f"there is no file {shown}")
    if len(content) > LARGEST_FILE:
        raise InputError(
            f"{shown} is larger than {LARGEST_FILE:,} bytes and no model or cluster; "
            "give the config.json or YAML file itself"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{shown} is not UTF-8 text") from None


def _constant(name: str) -> float:
    raise InputError(f"numbers must be finite, got {name}")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(f"numbers must be finite, got {text[:40]}")
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the field {brief(twice)} is given twice")
    return found


def parse_json(text: str, label: str) -> Any:
    """Parse JSON; ``label`` names the file in messages.

    Raises
    ------
    InputError
        If it is no JSON, nested too deeply, has a field twice or a number that is
        not finite.
    """
    try:
        return json.loads(
            text,
            parse_constant=_constant,
            parse_float=_float,
            object_pairs_hook=_pairs,
        )
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    except RecursionError:
        raise InputError(f"{label} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{label} is not JSON: {error.msg} at line {error.lineno}"
        ) from None
    except ValueError:
        raise InputError(f"{label} holds a number of thousands of digits") from None


def parse_yaml(text: str, label: str) -> Any:
    """Parse YAML of plain data; ``label`` names the file in messages.

    Aliases, anchors and tags are refused: no model needs them, and a few lines of
    aliases can stand for gigabytes.

    Raises
    ------
    InputError
        If it is no YAML, or has any of these, or a field twice.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, loader, text)
        node = yaml.compose(text, Loader=loader)
        _check_keys(yaml, node)
        return yaml.load(text, Loader=loader)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    except RecursionError:
        raise InputError(f"{label} is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise InputError(f"{label} is not YAML: {problem[:100]}{where}") from None
    except (ValueError, OverflowError):
        raise InputError(f"{label} holds a number or date out of range") from None


def _check_events(yaml: Any, loader: Any, text: str) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if count > MOST_EVENTS:
            raise InputError(f"more than {MOST_EVENTS:,} values are no model")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError("anchors and aliases are not allowed; write values out")
        if getattr(event, "tag", None):
            raise InputError(f"tags are not allowed, got {brief(event.tag)}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise InputError(f"nested deeper than {DEEPEST} levels")


def _check_keys(yaml: Any, node: Any) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InputError("names of fields must be text")
            if key.value in seen:
                raise InputError(f"the field {brief(key.value)} is given twice")
            seen.add(key.value)
            _check_keys(yaml, value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(yaml, value)


def read_data(path: Path) -> Any:
    """Read a file by its ending: ``.json``, or YAML.

    Raises
    ------
    InputError
        If it cannot be read or parsed.
    """
    text, label = read_text(path), brief(str(path), 120)
    if path.suffix.lower() in YAML_ENDINGS:
        return parse_yaml(text, label)
    return parse_json(text, label)
