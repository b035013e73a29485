"""The written rules: what is assumed where a row is silent, and which rows are left.

Inferences never read a measurement. Exclusions are of two kinds: a row that cannot be
judged (out of scope: it lacks a figure), and a row that is in scope but whose
published figure is known to be wrong or to describe something else. Only the second
kind counts against a source.
"""

from __future__ import annotations

#: What is assumed, by the name of the rule.
INFERENCES = {
    "dp": "dp = devices / (tp pp cp) and m = batch / (dp mbs); the row's own dp and "
    "accumulation steps are not read",
    "m-rounded": "the batch does not divide by dp mbs: micro-batches are rounded up",
    "mbs": "micro-batch 1 where it is not stated with pp > 1, else the largest of 4, "
    "2, 1 that fits in memory",
    "batch": "the batch is micro-batch times accumulation times dp where it is not "
    "stated, and one micro-batch a rank where accumulation is not either",
    "sp": "sequence parallelism is on with tp > 1 where it is not stated, except for "
    "stacks of before 2022",
    "vpp": "one chunk a rank where it is not stated or pp is 1; as many as there are "
    "layers for at most",
    "vpp-interleaved": "a schedule named interleaved without a number of chunks has "
    "two a rank",
    "etp": "experts are not cut by tensor parallelism unless it is stated",
    "ep": "expert parallelism is 1 where it is not stated",
    "sharding-none": "gradients are all-reduced where no sharding is stated",
    "sharding-memory": "'distributed optimizer or FSDP' is FSDP with pp 1 where the "
    "distributed optimizer does not fit in memory, else the distributed optimizer",
    "recompute-memory": "recomputation that is not stated is none, selective (norms "
    "and expert activations, or attention cores where they are not fused), that with "
    "whole feed-forward networks, or full: the first that fits in memory",
    "recompute-lora": "adapters are trained without recomputation where it is not "
    "stated: frozen weights keep few activations and no optimizer",
    "recompute-selective": "selective recomputation without a list is that of "
    "attention cores, and of activations and norms with fused attention",
    "attention": "the attention kernel is the usual one of the framework at its date",
    "head-dim": "a head has hidden / heads channels unless a note says otherwise",
    "vocab": "a vocabulary that is not stated has 51,200 rows",
    "catalogue": "an architecture that is not stated is the catalogue's of that name",
    "gated": "networks are gated and biases absent unless the row or a GPT name says "
    "otherwise",
    "gpus-per-node": "nodes of 8 devices, 4 for GB200 and GB300, where not stated",
    "capacity-device": "an A100 of unstated memory is the one of 80 GB",
    "precision": "bf16 where no precision is stated",
    "nearest-recipe": "an FP8 recipe that is not named is per-tensor scaling",
    "seq-len": "the sequence length is 4,096 where it is not stated",
    "stack": "the stack and its release are read from the framework's name",
}

#: Why a row has no prediction or is not judged, by the name of the rule.
EXCLUSIONS = {
    "no-architecture": "the architecture is neither stated nor in the catalogue",
    "unreadable": "the figures of the row do not make a model, a cluster or a layout",
    "no-device": "the device is not stated or not in the catalogue",
    "no-devices": "the number of devices is not stated",
    "no-batch": "neither the batch nor the micro-batch is stated",
    "no-layout": "tp, pp or another size is not stated",
    "no-measurement": "no time, throughput or utilisation is published",
    "failed": "the run crashed or ran out of memory",
    "does-not-divide": "tp pp cp does not divide the devices: a field is wrong",
    "layers": "there are fewer layers than stages: a field is wrong",
    "fields-disagree": "published step time and throughput differ by more than 2 %",
    "superseded": "a newer release of the same configuration is in the table",
    "repeated": "the same configuration and figure is in the table already",
    "contradicted": "the same stated configuration and release has another figure "
    "that differs by more than 20 %",
    "utilisation": "less than 10 % of peak: the network or a fault bounds the run",
    "impossible": "more than 80 % of peak: a field is wrong",
    "tier-d": "the collector marks the row as not to be used",
    "unnamed-device": "the source does not name the device",
    "real-data": "real routing or data loading, whose skew is not stated",
    "launcher": "MaxText's plain sparse experts with one process a node: three times "
    "slower than with one a device, a launcher's fault",
    "untuned": "a functional run of a test suite or verification card, not tuned",
}

#: Exclusions that say a figure is missing: such rows are out of scope.
OUT_OF_SCOPE = frozenset(
    {
        "no-architecture",
        "unreadable",
        "no-device",
        "no-devices",
        "no-batch",
        "no-layout",
        "no-measurement",
        "failed",
        "superseded",
        "repeated",
        "untuned",
        "utilisation",
        "unnamed-device",
        "tier-d",
    }
)


class Unstated(Exception):
    """A row lacks what a prediction needs.

    Attributes
    ----------
    rule
        Name of an entry of ``EXCLUSIONS``.
    """

    def __init__(self, rule: str) -> None:
        """Name the rule."""
        assert rule in EXCLUSIONS
        super().__init__(EXCLUSIONS[rule])
        self.rule = rule
