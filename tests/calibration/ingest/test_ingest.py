"""Readers keep what is sound, drop by a printed rule, and refuse what is damaged.

The excerpts are in the formats of ai-dynamo/aiconfigurator (commit 095f58a),
MooreThreads/SimuMax (4dcaae5), both Apache-2.0, VIA-Research/vTrain (f8dda84),
nccl-tests and rccl-tests, and PyTorch's Kineto; one or two of their rows each.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyarrow import parquet, table

from shardproof.calibration.ingest import Imported, read
from shardproof.calibration.ingest.machines import device_named
from shardproof.calibration.ingest.rules import RULES, Drops
from shardproof.models.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

#: 8192 cubed in bf16 on an H100, in ms: 783 TFLOP/s.
MS = 2 * 8192**3 / 783e12 * 1e3
GEMM: dict[str, Any] = {
    "framework": "TRTLLM",
    "version": "1.3.0rc20",
    "device": "NVIDIA H100 80GB HBM3",
    "op_name": "gemm",
    "kernel_source": "torch_flow",
    "gemm_dtype": "bfloat16",
    "m": 8192,
    "n": 8192,
    "k": 8192,
    "latency": MS,
}


def only(path: Path, rows: list[dict[str, Any]]) -> Imported:
    """Write rows as Parquet and read them."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    parquet.write_table(table(columns), path)
    return read(path)[0]


def test_a_sound_row_is_kept_in_seconds(tmp_path: Path) -> None:
    found = only(tmp_path / "gemm.parquet", [GEMM])
    (rows,) = found.rows
    assert rows.kernel == "gemm.bf16"
    assert rows.device == "h100"
    assert rows.seconds == pytest.approx([MS * 1e-3])
    assert [rows.sizes[name].tolist() for name in "mnk"] == [[8192]] * 3
    assert found.drops.counts == {}
    assert rows.source["licence"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("size", {"m": 0}),
        ("dtype", {"gemm_dtype": "int4_wo"}),
        ("dtype", {"gemm_dtype": "brainfloat"}),
        ("time", {"latency": 0.0}),
        ("time", {"latency": float("nan")}),
        ("time", {"latency": -1.0}),
        ("impossible", {"latency": MS / 2}),
        ("device", {"device": "NVIDIA H200"}),
    ],
)
def test_unsound_rows_are_dropped_and_counted(
    rule: str, change: dict[str, Any], tmp_path: Path
) -> None:
    found = only(tmp_path / "gemm.parquet", [GEMM, GEMM, GEMM | change])
    assert found.kept == 2
    assert found.drops.counts == {rule: 1}
    assert rule in RULES


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_times_in_another_unit_are_refused(factor: float, tmp_path: Path) -> None:
    rows = [GEMM | {"latency": MS * factor}] * 3
    with pytest.raises(InputError, match=r"times the roofline .* not in the expected"):
        only(tmp_path / "gemm.parquet", rows)


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "gemm.parquet"
    only(path, [GEMM])
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"cannot read gemm\.parquet as Parquet"):
        read(path)
    with pytest.raises(InputError, match="none of the known tables"):
        only(path, [{"device": "NVIDIA H100", "speed": 1}])
    with pytest.raises(InputError, match="names no device"):
        only(path, [{"gemm_dtype": "bfloat16"}])
    with pytest.raises(InputError, match="has no column 'latency'"):
        only(path, [{k: v for k, v in GEMM.items() if k != "latency"}])
    with pytest.raises(InputError, match="no known device is named in 'Abacus'"):
        only(path, [GEMM | {"device": "Abacus"}])
    with pytest.raises(InputError, match="there is no file"):
        read(tmp_path / "absent.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no file ending in"):
        read(tmp_path / "empty")


def test_attention_is_named_by_kernel_format_and_width(tmp_path: Path) -> None:
    row = {
        "device": "NVIDIA H100 80GB HBM3",
        "kernel_source": "fa3",
        "attn_dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
        "batch_size": 1,
        "isl": 8192,
        "num_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "window_size": 0,
        "latency": 1.77,
    }
    found = only(
        tmp_path / "attention.parquet",
        [row, row | {"kv_cache_dtype": "fp8"}, row | {"window_size": 128}],
    )
    assert found.rows[0].kernel == "attention.fa3.bf16.d128"
    assert found.rows[0].sizes["group"].tolist() == [8]
    assert found.drops.counts == {"mixed": 1, "window": 1}


def test_experts_are_cut_by_tensor_parallelism(tmp_path: Path) -> None:
    row = {
        "device": "NVIDIA H100",
        "kernel_source": "triton",
        "moe_dtype": "bfloat16",
        "num_tokens": 4096,
        "hidden_size": 4096,
        "inter_size": 14336,
        "topk": 2,
        "num_experts": 8,
        "moe_tp_size": 2,
        "moe_ep_size": 4,
        "distribution": "balanced",
        "latency": 3.0,
    }
    other = row | {"kernel_source": "cutlass"}
    found = only(
        tmp_path / "moe.parquet",
        [row, row, other, row | {"distribution": "power_law_1.2"}],
    )
    assert found.rows[0].kernel == "grouped.bf16"
    assert found.rows[0].sizes["inter"].tolist() == [7168, 7168]
    assert found.drops.counts == {"routing": 1, "kernel": 1}


def test_collectives_count_bytes_not_elements(tmp_path: Path) -> None:
    row = {
        "device": "NVIDIA H100",
        "op_name": "alltoall",
        "nccl_dtype": "half",
        "num_gpus": 8,
        "message_size": 2**28,
        "latency": 1.49,
    }
    found = only(tmp_path / "nccl.parquet", [row, row | {"nccl_dtype": "int8"}])
    (rows,) = found.rows
    assert rows.kernel == "collective.all_to_all"
    assert rows.sizes["bytes"].tolist() == [2**29]
    assert found.drops.counts == {"dtype": 1}


def test_an_exchange_sums_its_two_times_in_microseconds(tmp_path: Path) -> None:
    row = {"device": "NVIDIA H100", "node_num": 4, "hidden_size": 7168}
    row |= {"num_token": 4096, "num_topk": 8, "num_experts": 256}
    row |= {"dispatch_sms": 20, "dispatch_transmit_us": 1801.0}
    row |= {"dispatch_notify_us": 59.0, "combine_sms": 20}
    row |= {"combine_transmit_us": 3000.0, "combine_notify_us": 0.0}
    dispatch, combine = only(tmp_path / "deepep.parquet", [row]).rows
    assert dispatch.kernel == "exchange.dispatch.between"
    assert dispatch.seconds == pytest.approx([1860e-6])
    assert combine.seconds == pytest.approx([3e-3])


SIMUMAX = {
    "sys_name": "b200_bf16_ceperm",
    "accelerator": {
        "op": {
            "matmul": {
                "tflops": 2250.0,
                "accurate_efficient_factor": {
                    "b=1, m=4096, k=8192, n=10240, layout=TN, accumulate=False, "
                    "out_dtype=bf16": 0.6451614102335537
                },
            },
            "sdp_bwd": {
                "tflops": 2250.0,
                "accurate_efficient_factor": {
                    "batch=1, seq_len=4096, head_num=64, kv_head_num=8, "
                    "qk_head_dim=128, v_head_dim=128, qkv_contiguous=True": 0.7294
                },
            },
        }
    },
}


def test_efficiencies_become_times(tmp_path: Path) -> None:
    path = tmp_path / "b200.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SIMUMAX).encode()))
    backward, forward = read(path)[0].rows
    assert forward.kernel == "train.gemm.forward"
    expected = 2 * 4096 * 8192 * 10240 / (2250e12 * 0.6451614102335537)
    assert forward.seconds == pytest.approx([expected])
    assert backward.kernel == "train.attention.backward"
    # Five products over all pairs of 64 heads.
    flops = 5 * 2 * 64 * 4096**2 * 128
    assert backward.seconds == pytest.approx([flops / (2250e12 * 0.7294)])
    broken = json.loads(json.dumps(SIMUMAX).replace("layout=TN", "layout=XX"))
    path.write_bytes(gzip.compress(json.dumps(broken).encode()))
    with pytest.raises(InputError, match="is no SimuMax system file"):
        read(path)


NCCL_TESTS = """\
# nThread 1 nGpus 2 minBytes 8388608 maxBytes 16777216 step: 2(factor)
# Using devices
#  Rank  0 Group  0 Pid  41 on node1 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  41 on node1 device  1 [0x43] NVIDIA H100 80GB HBM3
#
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1    82.00  102.30  102.30      0
    16777216       4194304     float     sum      -1   144.00  116.51  116.51      0
# Out of bounds values : 0 OK
"""


@pytest.mark.parametrize("vendor", ["NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"])
def test_nccl_and_rccl_tests_are_read(vendor: str, tmp_path: Path) -> None:
    path = tmp_path / "all_reduce_perf.txt"
    path.write_text(NCCL_TESTS.replace("NVIDIA H100 80GB HBM3", vendor))
    (rows,) = read(path)[0].rows
    assert rows.kernel == "collective.all_reduce"
    assert rows.device == device_named(vendor)
    assert rows.sizes["ranks"].tolist() == [2, 2]
    assert rows.seconds == pytest.approx([82e-6, 144e-6])
    # The tool's own column: busbw = bytes / time * 2 (n - 1) / n.
    bus = rows.sizes["bytes"] / rows.seconds * 2 * (2 - 1) / 2
    assert bus / 1e9 == pytest.approx([102.30, 116.51], rel=1e-3)


def test_cut_off_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all_reduce_perf.txt"
    path.write_text(NCCL_TESTS[: NCCL_TESTS.index("144.00")])
    with pytest.raises(InputError, match="is cut off at the line '16777216"):
        read(path)
    path.write_text("hello\n")
    with pytest.raises(InputError, match="lists no ranks"):
        read(path)
    other = tmp_path / "notes.txt"
    other.write_text("hello\n")
    with pytest.raises(InputError, match="does not say which collective"):
        read(other)


def test_vtrains_tables_are_in_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "allreduce_v100_gpu8.txt"
    head = "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n"
    path.write_text(head + "1048576,262144,float,79930,22.96,78610,23.34\n")
    (rows,) = read(path)[0].rows
    bus = rows.sizes["bytes"] / rows.seconds * 2 * 7 / 8
    assert bus / 1e9 == pytest.approx([22.96], rel=1e-3)
    assert rows.device == "v100-32"
    path.write_text(head + "1048576,262144,fl")
    with pytest.raises(InputError, match="is cut off"):
        read(path)


def trace() -> dict[str, Any]:
    """Return a trace of a product, a collective and a copy, as Kineto writes them."""
    call = {
        "cat": "cpu_op",
        "name": "aten::mm",
        "args": {
            "External id": 7,
            "Input Dims": [[4096, 1024], [1024, 512]],
            "Input type": ["c10::BFloat16", "c10::BFloat16"],
        },
    }
    kernel = {"cat": "kernel", "name": "gemm", "dur": 20.0, "args": {"External id": 7}}
    reduction = {
        "cat": "kernel",
        "name": "ncclDevKernel",
        "dur": 150.0,
        "args": {
            "Collective name": "_reduce_scatter_base",
            "In msg nelems": 1000,
            "Out msg nelems": 125,
            "dtype": "BFloat16",
            "Group size": 8,
        },
    }
    copy = {"cat": "kernel", "name": "copy", "dur": 3.0, "args": {"External id": 9}}
    idle = {**kernel, "dur": 0}
    return {
        "deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}],
        "traceEvents": [call, kernel, reduction, copy, idle],
    }


def test_a_trace_gives_shapes_and_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace()))
    found = read(path)[0]
    scatter, product = found.rows
    assert product.kernel == "gemm.bf16"
    assert [float(product.sizes[name][0]) for name in "mnk"] == [4096, 512, 1024]
    assert product.seconds == pytest.approx([20e-6])
    assert scatter.kernel == "collective.reduce_scatter"
    assert scatter.sizes["bytes"].tolist() == [2000]
    assert found.drops.counts == {"kind": 1, "time": 1}
    nameless = {k: v for k, v in trace().items() if k != "deviceProperties"}
    path.write_text(json.dumps(nameless))
    with pytest.raises(InputError, match="names no device; give one with --device"):
        read(path)
    assert read(path, "b200")[0].rows[0].device == "b200"
    path.write_text("[1, 2")
    with pytest.raises(InputError, match="as JSON"):
        read(path)


def test_a_row_is_counted_by_the_first_rule_it_breaks() -> None:
    drops = Drops()
    alive = np.ones(3, dtype=bool)
    alive = drops.keep(np.array([True, False, True]), "size", alive)
    alive = drops.keep(np.array([True, False, False]), "time", alive)
    assert alive.tolist() == [True, False, False]
    assert drops.counts == {"size": 1, "time": 1}
