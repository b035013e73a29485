"""The number of configurations that the rules allow, counted without listing them.

From the sentences alone, as ``brute_force``: skeletons are visited one by one in
plain loops; for each, the inner choices are counted as sums of products over the axes
that some sentence binds together. Slow loops, no expressions, no arrays.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from . import brute_force_axes as more_axes
from .brute_force import Facts, modules_present, sizes, skeleton_fits

Axes = dict[str, tuple[object, ...]]
_SPACE = ("tp", "pp", "vpp", "cp", "ep", "etp", "mbs", "sp", "schedule", "split")


def count(axes: dict[str, list[object]], facts: Facts) -> int:
    """Return the number of legal configurations of a space."""
    counter = _Counter({n: tuple(values) for n, values in axes.items()}, facts)
    return sum(counter.inner(point) for point in _skeletons(axes, facts))


def _skeletons(axes: dict[str, list[object]], f: Facts) -> Iterator[dict[str, object]]:
    """Yield the legal choices of all axes but the inner ones, with dp, edp and m."""
    batches = [int(str(b)) for b in axes.get("gbs", [f.global_batch])]
    for values in product(*(axes[n] for n in _SPACE)):
        p = dict(zip(_SPACE, values, strict=True))
        n = {k: v for k, v in p.items() if isinstance(v, int)}
        dense, expert = n["tp"] * n["pp"] * n["cp"], n["etp"] * n["ep"] * n["pp"]
        if f.world % dense or f.world % expert:
            continue
        if sizes(str(p["split"]), f.layers, n["pp"], n["vpp"]) is None:
            continue
        dp, edp = f.world // dense, f.world // expert
        for batch in batches:
            m, rest = divmod(batch, n["mbs"] * dp)
            if not rest and m and skeleton_fits(n, p, f, m):
                yield {**p, "dp": dp, "edp": edp, "m": m}


class _Counter:
    """Counts inner choices; what few numbers decide is counted once."""

    def __init__(self, axes: Axes, facts: Facts) -> None:
        assert facts.more is not None
        self.axes, self.f, self.more, self.s = axes, facts, facts.more, facts.sizes
        self.styles = lru_cache(None)(self._styles)
        self.formats = lru_cache(None)(self._formats)
        self.states = lru_cache(None)(self._states)
        self.recomputed = lru_cache(None)(self._recomputed)

    def inner(self, p: dict[str, object]) -> int:
        """Return the number of inner choices of one skeleton."""
        n = {k: v for k, v in p.items() if isinstance(v, int)}
        tp, pp, cp = n["tp"], n["pp"], n["cp"]
        chunks = sizes(str(p["split"]), self.f.layers, pp, n["vpp"])
        assert chunks is not None
        switches = sum(
            more_axes.tensor_overlap_fits({"sp": p["sp"], "overlap_tp": on})
            for on in self.axes.get("overlap_tp", (False,))
        )
        losses = len(self.axes.get("cross_entropy", ("unfused",)))
        shape = (pp, n["vpp"], n["ep"], n["etp"])
        total = 0
        for precision in self.formats(tp, n["etp"]):
            state = self.states(precision, pp, n["ep"], n["dp"] * cp, n["edp"])
            total += state * self.recomputed(precision, shape, tuple(chunks))
        return total * switches * losses * self.styles(cp, tp)

    def _styles(self, cp: int, tp: int) -> int:
        listed = self.axes.get("cp_style", ("auto",))
        return sum(
            more_axes.style_fits(str(x), cp, tp, self.s, self.more) for x in listed
        )

    def _formats(self, tp: int, etp: int) -> tuple[str, ...]:
        listed = map(str, self.axes.get("precision", ("bf16",)))
        return tuple(
            x for x in listed if more_axes.format_fits(x, tp, etp, self.s, self.more)
        )

    def _states(self, precision: str, pp: int, ep: int, ranks: int, edp: int) -> int:
        """Count sharding, instances, offload and the overlaps of data parallelism."""
        listed: Iterable[tuple[object, ...]] = product(
            self.axes["sharding"],
            self.axes.get("instances", (1,)),
            self.axes.get("offload", ("none",)),
            self.axes.get("overlap_grads", (False,)),
            self.axes.get("overlap_params", (False,)),
        )
        return sum(
            more_axes.sharding_fits(str(kind), precision, pp, ep, self.more)
            and more_axes.instances_fit(str(kind), int(str(parts)), ranks, edp)
            and more_axes.offload_fits(str(moved), str(kind))
            and more_axes.overlaps_fit(str(kind), grads, params)
            for kind, parts, moved, grads, params in listed
        )

    def _recomputed(
        self, precision: str, shape: tuple[int, ...], chunks: tuple[int, ...]
    ) -> int:
        """Count recomputation, dispatcher and the overlaps of the experts."""
        pp, vpp, ep, etp = shape
        found = 0
        for chosen, dispatcher, experts, shared in product(
            self.axes["recompute"],
            self.axes.get("dispatcher", ("alltoall",)),
            self.axes.get("overlap_ep", (False,)),
            self.axes.get("overlap_shared", (False,)),
        ):
            point = {"recompute": chosen, "dispatcher": dispatcher}
            point |= {"overlap_ep": experts, "overlap_shared": shared}
            found += (
                modules_present(chosen, self.f)
                and more_axes.recompute_fits(chosen, precision, list(chunks), self.more)
                and more_axes.dispatcher_fits(
                    str(dispatcher), ep, etp, self.s, self.more
                )
                and more_axes.experts_overlap_fits(point, pp, vpp, ep, self.more)
                and more_axes.shared_overlap_fits(point, self.s)
            )
        return found
