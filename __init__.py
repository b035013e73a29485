"""shardproof: exact planning of distributed LLM training.

The names below are loaded when first used, so that importing the package costs
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardproof.interfaces.api import enumerate_feasible as enumerate_feasible
    from shardproof.interfaces.api import memory as memory
    from shardproof.interfaces.api import plan as plan
    from shardproof.interfaces.api import project as project
    from shardproof.interfaces.one import MemoryReport as MemoryReport
    from shardproof.models.architecture import Architecture as Architecture
    from shardproof.models.cluster import Cluster as Cluster
    from shardproof.models.cluster import Device as Device
    from shardproof.models.cluster import Fabric as Fabric
    from shardproof.models.errors import InputError as InputError
    from shardproof.models.layout import Layout as Layout
    from shardproof.models.problem import Problem as Problem
    from shardproof.models.problem import Training as Training
    from shardproof.solver.answer import Answer as Answer
    from shardproof.solver.answer import Infeasible as Infeasible
    from shardproof.solver.feasible import FeasibleSet as FeasibleSet

__version__ = "0.1.0"

_HOME = {
    "Answer": "solver.answer",
    "Architecture": "models.architecture",
    "Cluster": "models.cluster",
    "Device": "models.cluster",
    "Fabric": "models.cluster",
    "FeasibleSet": "solver.feasible",
    "Infeasible": "solver.answer",
    "InputError": "models.errors",
    "Layout": "models.layout",
    "MemoryReport": "interfaces.one",
    "Problem": "models.problem",
    "Training": "models.problem",
    "enumerate_feasible": "interfaces.api",
    "memory": "interfaces.api",
    "plan": "interfaces.api",
    "project": "interfaces.api",
}
__all__ = [
    "Answer",
    "Architecture",
    "Cluster",
    "Device",
    "Fabric",
    "FeasibleSet",
    "Infeasible",
    "InputError",
    "Layout",
    "MemoryReport",
    "Problem",
    "Training",
    "enumerate_feasible",
    "memory",
    "plan",
    "project",
]


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'shardproof' has no attribute {name!r}")
    found = getattr(import_module(f"shardproof.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*globals(), *__all__])
