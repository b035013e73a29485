"""A profile: how much of its peaks a device and its software stack reach.

Its factors come from three layers, and any of them may be replaced alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .laws import AttentionLaw, GemmLaw, LinkLaw, MemoryLaw, StackLaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .layer import Kind, Layer
    from .surfaces import Kernel

_LAWS: dict[str, type[Any]] = {
    "attention": AttentionLaw,
    "memory": MemoryLaw,
    "scale_up": LinkLaw,
    "network": LinkLaw,
    "stack": StackLaw,
}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The factors of a device, its stack and its cluster.

    Attributes
    ----------
    name
        Shown beside every answer.
    gemm
        By number format, and format with recipe (``fp8-block``).
    attention
        Of the kernel that the device's stacks use unless told otherwise.
    attentions
        Of other generations of the kernel, by name.
    scale_up, network
        Inside a scale-up domain, and between domains.
    calibrated
        Whether the factors were fitted to measurements of this stack.
    band
        Relative half-width of the interval of a step time.
    sources
        For each factor, ``section.name``, where its figure comes from.
    layers
        Where the factors come from, by kind; empty for a profile made by hand.
    """

    name: str
    gemm: Mapping[str, GemmLaw]
    attention: AttentionLaw
    memory: MemoryLaw
    scale_up: LinkLaw
    network: LinkLaw
    stack: StackLaw
    calibrated: bool
    band: float
    attentions: Mapping[str, AttentionLaw] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[Kind, Layer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the band at birth and freeze the mappings."""
        if not 0 <= self.band < 1:
            raise InputError(
                f"band of a profile is at least 0 and below 1, got {self.band}"
            )
        for name in ("gemm", "attentions", "sources", "layers"):
            value = getattr(self, name)
            object.__setattr__(self, name, MappingProxyType(dict(value)))

    def gemm_law(self, precision: str, recipe: str = "") -> GemmLaw:
        """Return the law of a number format; fp16 runs as bf16 does.

        A recipe (``block``) without factors of its own takes those of its format.

        Raises
        ------
        InputError
            If the profile has no factors for the format.
        """
        known = "bf16" if precision == "fp16" else precision
        if f"{known}-{recipe}" in self.gemm:
            return self.gemm[f"{known}-{recipe}"]
        if known not in self.gemm:
            raise InputError(
                f"profile {self.name} has no factors for {precision}; it has "
                f"{', '.join(self.gemm)}"
            )
        return self.gemm[known]

    def attention_law(self, generation: str = "") -> AttentionLaw:
        """Return the law of a generation of the attention kernel.

        Without a name, that of the kernel which the device's stacks use.

        Raises
        ------
        InputError
            If the profile has no factors for the generation.
        """
        if not generation:
            return self.attention
        if generation not in self.attentions:
            raise InputError(
                f"profile {self.name} has no factors for the attention kernel "
                f"{generation}; it has {', '.join(self.attentions) or 'only its own'}"
            )
        return self.attentions[generation]

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:
        """Measured kernels of the device and cluster layers by name, read when asked.

        Attributes of each: ``seconds(**sizes)``, ``half_width(**sizes)``, ``domain``.
        """
        from .surfaces import kernel_of

        return MappingProxyType(
            {
                name: kernel_of(document)
                for layer in self.layers.values()
                for name, document in layer.tables.items()
            }
        )

    def interval(self, step_time: float) -> tuple[float, float]:
        """Return the ends of the band around a step time, in seconds."""
        return step_time * (1 - self.band), step_time * (1 + self.band)

    def factors(self) -> dict[str, float]:
        """Return every factor by its name, ``section.name``."""
        found = {"band": self.band}
        for part in fields(self):
            law = getattr(self, part.name)
            if is_dataclass(law):
                found |= _named(part.name, law)
        for precision, law in self.gemm.items():
            found |= _named(f"gemm.{precision}", law)
        for generation, law in self.attentions.items():
            found |= _named(f"attention.{generation}", law)
        return found

    def with_layer(self, layer: Layer) -> Profile:
        """Return the profile with one of its layers replaced.

        Raises
        ------
        InputError
            If the profile was made by hand, so that it has no layers, or if the
            layers lack a factor together.
        """
        if not self.layers:
            raise InputError(
                f"profile {self.name} was not assembled from layers; build it with "
                "profile_of or assemble"
            )
        return assemble({**self.layers, layer.kind: layer}.values())


def _named(section: str, law: Any) -> dict[str, float]:
    return {f"{section}.{f.name}": getattr(law, f.name) for f in fields(law)}


def assemble(layers: Iterable[Layer], name: str = "") -> Profile:
    """Put a profile together from a device, a stack and a cluster layer.

    Where two layers hold a factor the stack's counts, then the cluster's: they saw
    whole steps. A profile is calibrated when all its layers are.

    Raises
    ------
    InputError
        If a factor that a law needs is missing or unknown.
    """
    order = {"device": 0, "cluster": 1, "stack": 2}
    known = sorted(layers, key=lambda layer: order[layer.kind])
    if [layer.kind for layer in known] != list(order):
        raise InputError(
            "a profile needs one device, one stack and one cluster layer, got "
            f"{', '.join(layer.kind for layer in known) or 'none'}"
        )
    factors: dict[str, float] = {}
    sources: dict[str, str] = {}
    for layer in known:
        factors |= layer.factors
        sources |= {factor: layer.sources[factor] for factor in layer.factors}
    whole = "+".join(layer.title for layer in known)
    sections = _sections(factors)
    title = name or whole
    variants = sections.pop("gemm", {}), sections.pop("attention.", {})
    return Profile(
        name=title,
        gemm={key: _law(GemmLaw, v, f"gemm.{key}") for key, v in variants[0].items()},
        attentions={
            key: _law(AttentionLaw, v, f"attention.{key}")
            for key, v in variants[1].items()
        },
        calibrated=all(layer.calibrated for layer in known),
        band=factors.get("band", 0.6),
        sources=sources,
        layers={layer.kind: layer for layer in known},
        **{
            section: _law(law, sections.get(section, {}), section)
            for section, law in _LAWS.items()
        },
    )


def _sections(factors: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Sort factors by law; attention kernels by name go under ``attention.``."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in factors.items():
        if name == "band":
            continue
        section, *middle, last = name.split(".")
        if not middle:
            found.setdefault(section, {})[last] = value
            continue
        if section == "attention":
            section = "attention."
        found.setdefault(section, {}).setdefault(".".join(middle), {})[last] = value
    return found


def _law(law: type[Any], values: Mapping[str, float], section: str) -> Any:
    wanted = {f.name for f in fields(law)}
    if strange := sorted(set(values) - wanted):
        raise InputError(
            f"a profile has no factor {section}.{strange[0]}; {section} has "
            f"{', '.join(sorted(wanted))}"
        )
    try:
        return law(**values)
    except TypeError:
        missing = sorted(wanted - set(values))
        raise InputError(
            f"a profile needs {section}.{missing[0]}, and none of its layers has it"
        ) from None
