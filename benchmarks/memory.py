"""Tensor bytes of megatron-core cases: ``python -m shardproof.benchmarks.memory``.

Reads cases in the schema of the golden files (one dictionary of Megatron's settings
each) and returns what one micro-batch keeps and how many parameters a rank holds.
Result fields such as ``saved_bytes`` may be absent from the input; they are not read.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ..models.expr import value
from ..models.layout import DECIDED, DERIVED, Dims, recompute_code
from ..models.memory import Kernels, MemoryModel
from ..models.memory.entries import SIZES
from ..models.problem import Training
from ..models.stages import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.memory.entries import Entry

Case = dict[str, Any]


def _attention(case: Case) -> Attention | LatentAttention:
    if latent := case.get("mla"):
        return LatentAttention(
            heads=case["a"],
            q_rank=latent["q_lora_rank"],
            kv_rank=latent["kv_lora_rank"],
            nope_dim=latent["qk_head_dim"],
            rope_dim=latent["qk_pos_emb_head_dim"],
            v_dim=latent["v_head_dim"],
        )
    return Attention(
        heads=case["a"],
        kv_heads=case.get("g") or case["a"],
        head_dim=case.get("d") or case["h"] // case["a"],
        qkv_bias=case.get("qkv_bias", False) or case.get("bias", False),
        out_bias=case.get("bias", False),
        qk_norm="head" if case.get("qk_ln") else "none",
    )


def _feed_forward(case: Case, *, moe: bool) -> DenseFFN | MoE:
    gated, bias = case.get("glu", True), case.get("bias", False)
    ffn = case.get("f", 4 * case["h"])
    if not moe:
        return DenseFFN(ffn=ffn, gated=gated, bias=bias)
    extra = case.get("extra", {})
    return MoE(
        experts=case["experts"],
        topk=case.get("topk", 2),
        ffn=case.get("moe_f", ffn),
        gated=gated,
        bias=bias,
        shared_ffn=case.get("shared_f") or 0,
        shared_gate=extra.get("moe_shared_expert_gate", False),
        score_bias=extra.get("moe_router_enable_expert_bias", False),
        scoring=case.get("score", "softmax"),
    )


def _is_moe(case: Case, index: int) -> bool:
    """Whether a layer is a mixture of experts: one in ``moe_freq``, or a pattern."""
    if not case.get("experts"):
        return False
    frequency = case.get("moe_freq", 1)
    if isinstance(frequency, int):
        return index % frequency == 0
    return bool(frequency[index])


def architecture_of(case: Case) -> Architecture:
    """Return the model of a case, with the layers of all pipeline ranks."""
    attention = _attention(case)
    layers = tuple(
        Layer(
            attention=attention,
            feed_forward=_feed_forward(case, moe=_is_moe(case, index)),
        )
        for index in range(case["layers"])
    )
    position = case.get("pos", "rope")
    learned = position == "learned_absolute"
    return Architecture(
        name="case",
        hidden=case["h"],
        vocab=case.get("vocab", 32000),
        layers=layers,
        norm="layer" if case.get("norm", "RMSNorm") == "LayerNorm" else "rms",
        norm_bias=case.get("norm", "RMSNorm") == "LayerNorm",
        position="learned" if learned else ("rope" if position == "rope" else "none"),
        max_positions=case["s"] if learned else 0,
        tied=case.get("tied", False),
    )


def kernels_of(case: Case) -> Kernels:
    """Return the kernels of a case; the oracle's defaults, not a launcher's."""
    local = case.get("impl", "local") != "te"
    capacity = case.get("cap")
    extra = case.get("extra", {})
    loss = {"aux_loss": "aux", "seq_aux_loss": "seq-aux"}.get(case.get("lb", "none"))
    return Kernels(
        implementation="local" if local else "te",
        flash=case.get("attn", "unfused") == "flash",
        softmax_fp32=case.get("softmax32", False),
        activation_fusion=case.get("act_fusion", True),
        rope_fusion=False,
        permute_fusion=case.get("permute_fusion", False),
        router_fp32=case.get("router_dtype") == "fp32",
        pre_softmax=case.get("pre_softmax", False),
        aux_loss="none" if loss is None else ("aux" if loss == "aux" else "seq-aux"),
        z_loss=bool(extra.get("moe_z_loss_coeff")),
        capacity=float(capacity).as_integer_ratio() if capacity else None,
        latent_norm=bool(case.get("qk_ln", False)),
        parameter_bytes=4 if case.get("dtype") == "float32" else 2,
        vocab_multiple=1,
    )


def _recompute(case: Case) -> int:
    choice = case.get("recompute")
    if choice is None:
        return 0
    return recompute_code(choice if isinstance(choice, str) else "+".join(choice))


def dims_of(case: Case) -> Dims:
    """Return the axes of a case, every one fixed."""
    tp, pp, cp, ep = (case.get(k) or 1 for k in ("tp", "pp", "cp", "ep"))
    etp = case.get("etp") or tp
    world = case.get("world") or tp * pp * cp * ep
    fixed = {name: 0 for name in ("schedule", "split", "sharding")}
    fixed |= {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "etp": etp, "mbs": case["b"]}
    fixed |= {"sp": int(case.get("sp", False)), "recompute": _recompute(case)}
    fixed |= {"vpp": case.get("vpp") or 1, "m": 1}
    fixed |= {"dp": max(1, world // (tp * pp * cp))}
    fixed |= {"edp": max(1, world // (etp * ep * pp))}
    return Dims.of({name: (fixed[name],) for name in (*DECIDED, *DERIVED)})


@dataclass(frozen=True)
class Measured:
    """A case in the product's terms: the model and the chunk its rank holds."""

    model: MemoryModel
    chunk: Chunk

    def components(self) -> list[tuple[str, int]]:
        """Name the ledgers that one micro-batch of the rank adds up, with counts."""
        found = [(f"layer {k}", n) for k, n in enumerate(self.chunk.layers) if n]
        found.append(("model", 1))
        if self.chunk.embedding:
            found.append(("embedding", 1))
        if self.chunk.head:
            found += [("final norm", 1), ("loss", 1)]
        return found

    def saved(self) -> int:
        """Bytes that autograd keeps after one forward pass of the rank."""
        sizes = (n * self.bytes_of(name) for name, n in self.components())
        return sum(sizes)

    def bytes_of(self, component: str) -> int:
        """Bytes of one component."""
        return value(self.model.saved(component), {})

    def entries(self) -> list[tuple[str, Entry, int]]:
        """Component, entry and number of its occurrences on the rank."""
        code = self.model.board.codes[0]
        return [
            (name, entry, n)
            for name, n in self.components()
            for entry in self.model.board.entries(name, code)
        ]


def read(case: Case) -> Measured:
    """Translate a case into the product's terms."""
    arch = architecture_of(case)
    training = Training(
        seq_len=case["s"],
        global_batch=case["b"],
        cross_entropy="native-fused" if case.get("ce_fusion") else "unfused",
        dropout=bool(case.get("dropout", 0.0)),
    )
    pp = case.get("pp") or 1
    rank = case.get("rank", 0) // max(1, (case.get("world") or 0) // pp or _inner(case))
    held = arch.kind_of_layer[
        rank * len(arch.layers) // pp : (rank + 1) * len(arch.layers) // pp
    ]
    chunk = Chunk(
        layers=tuple(held.count(k) for k in range(len(arch.kinds))),
        mtp=0,
        embedding=case.get("pre", True),
        head=case.get("post", True),
    )
    return Measured(MemoryModel(arch, training, dims_of(case), kernels_of(case)), chunk)


def _inner(case: Case) -> int:
    """Ranks of one pipeline stage."""
    return (case.get("tp") or 1) * (case.get("cp") or 1)


def _items(measured: Measured) -> list[dict[str, Any]]:
    """List the tensors, each with its name, like the goldens' ``items``."""
    found = []
    for component, entry, times in measured.entries():
        size = value(entry.unit.times(entry.numbers), {}) * SIZES[entry.dtype]
        if size:
            found.append(
                {
                    "name": f"{component}: {entry.name}",
                    "n": entry.count * times,
                    "dtype": entry.dtype,
                    "shape": entry.shape,
                    "nbytes": size,
                }
            )
    return found


def evaluate(case: Case) -> dict[str, Any]:
    """Return saved bytes and parameters of one case.

    Returns
    -------
    dict
        ``per_layer_saved``: bytes one more layer adds; ``saved_bytes``: bytes of the
        whole rank; ``per_layer_params`` and ``params``: parameters; ``items``: the
        tensors by name.
    """
    measured = read(case)
    model, chunk = measured.model, measured.chunk
    kind = max(range(len(chunk.layers)), key=lambda k: chunk.layers[k])
    return {
        "per_layer_saved": measured.bytes_of(f"layer {kind}"),
        "per_layer_params": value(model.layer_parameters(kind), {}),
        "saved_bytes": measured.saved(),
        "params": value(model.rank_parameters((chunk,)), {}),
        "items": _items(measured),
    }


def run(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Evaluate cases in order; each has its settings under ``case``."""
    return [evaluate(dict(entry.get("case", entry))) for entry in cases]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the results of a file of cases."""
    parser = argparse.ArgumentParser(prog="shardproof bench memory")
    parser.add_argument("--data", type=Path, required=True, help="JSON list of cases")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(argv)
    cases = json.loads(chosen.data.read_text())
    results = run(cases)
    if chosen.json:
        print(json.dumps({"cases": results}))
        return 0
    for entry, result in zip(cases, results, strict=True):
        name = entry.get("name", "case")
        off = result["saved_bytes"] - entry.get("saved_bytes", result["saved_bytes"])
        print(f"{name}: {result['saved_bytes']:,} bytes kept, {off:+,} off")
    return 0


if __name__ == "__main__":
    sys.exit(main())
