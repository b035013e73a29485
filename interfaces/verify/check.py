"""What a saved answer claims, claim by claim, checked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...models.errors import InputError
from .count import Space
from .listed import of_answers, of_rows
from .proofs import of_certificate, of_infeasible, of_set
from .rules import Rules
from .saved import NotCoveredError, parse
from .seal import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .saved import Document, Saved

Result = Literal["holds", "refuted", "not covered"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim: its name, what came out, and what is wrong or not covered."""

    name: str
    result: Result
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every claim of a file."""

    checks: tuple[Check, ...]

    @property
    def refuted(self) -> bool:
        """Whether some claim is false."""
        return any(check.result == "refuted" for check in self.checks)

    @property
    def verified(self) -> bool:
        """Whether every claim was checked and holds."""
        return all(check.result == "holds" for check in self.checks)


def verify(document: Document, *, count: bool = True) -> Report:
    """Check a saved answer.

    Parameters
    ----------
    document
        What plan, project or enumerate printed with ``--json``.
    count
        Whether to loop over the whole space, which takes longest.

    Raises
    ------
    InputError
        If the document is not one.
    """
    saved_digest = document.get("digest")
    if not isinstance(saved_digest, str):
        raise InputError(
            "the file holds no digest of itself: save the answer again, with --json"
        )
    same = saved_digest == digest(document)
    checks = [_check("digest", lambda: _digest(same=same))]
    try:
        saved = parse(document)
        space = Space(saved, Rules(saved))
    except NotCoveredError as error:
        told = Check(name="all others", result="not covered", details=(str(error),))
        return Report(checks=(*checks, told))
    except InputError:
        if same:
            raise
        return Report(checks=tuple(checks))
    checks += [
        _check(name, claim) for name, claim in _claims(saved, space, count=count)
    ]
    return Report(checks=tuple(checks))


def _claims(
    saved: Saved, space: Space, *, count: bool
) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    yield "problem", lambda: _problem(saved)
    schema = saved.document["schema"]
    if schema == "shardproof/feasible-set@1":
        yield "rows", lambda: of_rows(saved, space, every=count)
        if count:
            yield "count", lambda: of_set(saved, space)
    elif schema == "shardproof/infeasible@1":
        yield "proof", lambda: of_infeasible(saved, space, count=count)
    else:
        yield "answers", lambda: of_answers(saved, space)
        yield "certificate", lambda: of_certificate(saved, space, count=count)


def _check(name: str, claim: Callable[[], Iterator[str]]) -> Check:
    try:
        faults = tuple(claim())
    except NotCoveredError as error:
        return Check(name=name, result="not covered", details=(str(error),))
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ) as error:
        told = f"something is missing or not of its kind: {error!r}"[:200]
        return Check(name=name, result="refuted", details=(told,))
    return Check(name=name, result="refuted" if faults else "holds", details=faults)


def _digest(*, same: bool) -> Iterator[str]:
    if not same:
        yield "the content is not what was saved: its digest is another"


def _problem(saved: Saved) -> Iterator[str]:
    """Numbers that stand twice are the same both times."""
    problem, content = saved.document["problem"], saved.document["space_content"]
    if problem["cluster"]["devices"] != saved.world:
        yield f"devices are nodes times GPUs, {saved.world:,}"
    if problem["model"] != saved.architecture.name:
        yield f"the architecture is {saved.architecture.name}"
    for name in saved.pins:
        if not saved.pinned(name):
            yield f"the pin of {name} lies outside its axis"
    space = f"{content['name']}@{content['version']}"
    for part in ("certificate", "infeasible"):
        found = saved.document.get(part, {})
        if found and found["space"] != space:
            yield f"the space is {space}"
        if found and found["dialect"] != problem["dialect"]:
            yield f"the dialect is {problem['dialect']}"
    if saved.document.get("space", space) != space:
        yield f"the space is {space}"
    certificate = saved.document.get("certificate", saved.document)
    for holder in (saved.document, certificate):
        if holder["space_hash"] != saved.space_hash():
            yield f"the space's hash is {saved.space_hash()}"
