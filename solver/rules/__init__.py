"""Legality rules as data: what each framework itself accepts."""

from __future__ import annotations

from .accelerate import MESH
from .accelerate_plugin import PLUGIN
from .context import CONTEXT
from .deepspeed import GRIDS
from .deepspeed_optimizer import OPTIMIZERS
from .deepspeed_precision import PRECISIONS
from .deepspeed_zero import ZERO
from .dialects import BASES as BASES
from .dialects import DIALECTS as DIALECTS
from .dialects import parse_dialect as parse_dialect
from .dialects import rules_of
from .dispatch import DISPATCH
from .divisibility import DIVISIBILITY
from .experts import ROUTER
from .facts import Facts as Facts
from .facts import Structures as Structures
from .graphs import GRAPHS
from .groups import GROUPS
from .letters import LETTERS
from .offload import OFFLOAD
from .overlap import OVERLAP
from .placement import KNOWN_BAD, PLACEMENT
from .planner import PLANNER
from .precision import PRECISION
from .recompute import RECOMPUTE
from .rule import CHECKERS as CHECKERS
from .rule import Rule as Rule  # noqa: TC001, re-exported for use at run time
from .schedule import SCHEDULE
from .sharding import SHARDING
from .stages import SPLIT
from .torchtitan import TORCHTITAN
from .zero_bubble import DUALPIPE, PRIMUS, SEGMENTS

#: Every rule of every dialect, in the order in which they are reported.
ALL_RULES: tuple[Rule, ...] = (
    *GROUPS,
    *DIVISIBILITY,
    *SPLIT,
    *SCHEDULE,
    *LETTERS,
    *CONTEXT,
    *ROUTER,
    *DISPATCH,
    *RECOMPUTE,
    *OFFLOAD,
    *OVERLAP,
    *SHARDING,
    *PRECISION,
    *GRAPHS,
    *PLANNER,
    *PLACEMENT,
    *KNOWN_BAD,
    *PRIMUS,
    SEGMENTS,
    *DUALPIPE,
    *TORCHTITAN,
    *GRIDS,
    *PRECISIONS,
    *ZERO,
    *OPTIMIZERS,
    *MESH,
    *PLUGIN,
)


def rules(dialect: str) -> tuple[Rule, ...]:
    """Return the rules of one release of a dialect, such as ``megatron@0.16``.

    Raises
    ------
    InputError
        If the dialect or its release is unknown.
    """
    name, release = parse_dialect(dialect)
    return rules_of(name, release, ALL_RULES)
