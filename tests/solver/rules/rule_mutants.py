"""Mutants of the rules: their modules compiled with a switch at every condition.

A *site* is a place in a rule's source where a condition is put together. A mutant
drops one conjunct there, moves one comparison by one, or takes one divisibility as
met; ``Switch.active`` says which, and ``Switch.hit`` which sites a rule came by.
"""

from __future__ import annotations

import ast
import operator
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardproof.models.expr import TRUE, Expr, both, divides, value
from shardproof.solver import rules as package
from shardproof.solver.rules import Facts, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FOLDER = Path(package.__file__).parent
#: Modules that hold no rules.
_OTHERS = {"__init__", "catalogue", "dialects", "facts", "rule", "sources"}
MODULES = tuple(sorted({p.stem for p in FOLDER.glob("*.py")} - _OTHERS))
_COMPARED = ("at_least", "at_most", "less", "equals")
_PLAIN = {
    ast.LtE: "le",
    ast.Lt: "lt",
    ast.GtE: "ge",
    ast.Gt: "gt",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module: the site, and what is done there."""

    module: str
    site: int
    variant: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}: {self.text}"


class Switch:
    """What an instrumented module calls at its sites."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.active: tuple[int, int] | None = None
        self.hit: set[int] = set()
        self.words: set[int] = set()
        self.mutants: dict[int, list[Mutant]] = {}

    def add(self, text: str, variants: Iterable[str]) -> int:
        site = len(self.mutants)
        self.mutants[site] = [
            Mutant(self.module, site, i, f"{text} -> {variant}")
            for i, variant in enumerate(variants)
        ]
        return site

    def _variant(self, site: int) -> int | None:
        self.hit.add(site)
        return self.active[1] if self.active and self.active[0] == site else None

    def both(self, site: int, *groups: tuple[Expr | int, ...]) -> Expr:
        dropped = self._variant(site)
        return both(*(a for i, g in enumerate(groups) if i != dropped for a in g))

    def divides(self, site: int, part: Any, whole: Any) -> Expr:
        return TRUE if self._variant(site) == 0 else divides(part, whole)

    def compared(self, site: int, test: Callable[..., Any], a: Any, b: Any) -> Any:
        variant = self._variant(site)
        if not isinstance(b, Expr | int) or isinstance(b, bool):
            self.words.add(site)  # a word or a set, which no one can be added to
            return test(a, b)
        if variant is None:
            return test(a, b)
        return test(a, b + (1, -1)[variant])

    def plain(self, site: int, name: str, a: Any, b: Any) -> Any:
        return self.compared(site, getattr(operator, name), a, b)

    def conjunction(self, site: int, *parts: Callable[[], Any]) -> Any:
        dropped, result = self._variant(site), True
        for i, part in enumerate(parts):
            if i != dropped:
                result = part()
                if not result:
                    return result
        return result

    def every(self, site: int, holds: Iterable[Any]) -> bool:
        return True if self._variant(site) == 0 else all(holds)


class _Instrument(ast.NodeTransformer):
    def __init__(self, switch: Switch) -> None:
        self.switch = switch

    def _call(self, name: str, site: int, *args: ast.expr) -> ast.expr:
        method = ast.Attribute(ast.Name("_switch", ast.Load()), name, ast.Load())
        return ast.Call(method, [ast.Constant(site), *args], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        text = ast.unparse(node)
        dropped = [f"without {ast.unparse(a)}" for a in node.args]
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        name = node.func.id
        if name == "both":
            groups = [ast.Tuple([a], ast.Load()) for a in node.args]
            return self._call("both", self.switch.add(text, dropped), *groups)
        if name == "divides":
            site = self.switch.add(text, ["nothing"])
            return self._call("divides", site, *node.args)
        if name == "all":
            return self._call("every", self.switch.add(text, ["True"]), *node.args)
        if name in _COMPARED:
            site = self.switch.add(text, ["+ 1", "- 1"])
            return self._call("compared", site, node.func, *node.args)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        text = ast.unparse(node)
        self.generic_visit(node)
        name = _PLAIN.get(type(node.ops[0]))
        if name is None or len(node.ops) > 1:
            return node
        site = self.switch.add(text, ["+ 1", "- 1"])
        args = (ast.Constant(name), node.left, node.comparators[0])
        return self._call("plain", site, *args)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        text = ast.unparse(node)
        shown = [f"without {ast.unparse(v)}" for v in node.values]
        self.generic_visit(node)
        if not isinstance(node.op, ast.And):
            return node
        empty = ast.arguments([], [], None, [], [], None, [])
        parts = [ast.Lambda(empty, value) for value in node.values]
        return self._call("conjunction", self.switch.add(text, shown), *parts)


def instrumented(module: str) -> tuple[Switch, dict[tuple[str, str], Rule]]:
    """Compile one module of rules with switches; return its own rules by dialect."""
    path = FOLDER / f"{module}.py"
    switch = Switch(module)
    tree = ast.parse(path.read_text("utf-8"), str(path))
    tree = ast.fix_missing_locations(_Instrument(switch).visit(tree))
    made = types.ModuleType(f"{package.__name__}.{module}_mutable")
    made.__dict__.update(__package__=package.__name__, _switch=switch)
    exec(compile(tree, str(path), "exec"), made.__dict__)
    found = {}
    for held in vars(made).values():
        for rule in held if isinstance(held, tuple) else ():
            if isinstance(rule, Rule) and rule.body.__module__ == made.__name__:
                found[rule.dialect, rule.id] = rule
    return switch, found


def outcome(
    rule: Rule, facts: Facts, point: Mapping[str, int] | None = None
) -> int | str:
    """Return what a rule's body comes to; the kind of error if it raises one."""
    try:
        return value(rule.body(facts), point or {})
    except Exception as error:
        return type(error).__name__
