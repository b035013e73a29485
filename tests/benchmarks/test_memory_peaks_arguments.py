"""Megatron's arguments: words, models, stages, runs."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.models.architecture import LatentAttention, MoE
from shardproof.models.dialects.megatron_args import Arguments
from shardproof.models.dialects.megatron_args_model import (
    architecture_of,
    kernels_of,
    vocabulary,
)
from shardproof.models.dialects.megatron_args_run import attention_of, read_run
from shardproof.models.dialects.megatron_args_stages import stages_of
from shardproof.models.errors import InputError
from shardproof.models.expr import value
from shardproof.models.parameters import parameter_count

#: The smallest test of Megatron's CI (tests/functional_tests/test_cases/gpt).
GPT = (
    "--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 32"
)


def arguments(more: str = "") -> Arguments:
    """Read the words of a command line."""
    return Arguments.parse(shlex.split(f"{GPT} {more}"))


def layers(more: str) -> list[list[int]]:
    """Return the layers of every chunk of every rank."""
    args = arguments(more)
    ranks = stages_of(args, architecture_of(args))
    return [[sum(chunk.layers) for chunk in rank] for rank in ranks]


def test_words_become_values() -> None:
    """Flags stand alone, values follow or are joined by =, the last one holds."""
    args = Arguments.parse(
        shlex.split("--swiglu --lr=1e-4 --x 1 --x 2 --cp-sizes 2 2 --off false")
    )
    assert args.has("swiglu") and not args.has("off") and not args.has("missing")
    assert args.number("lr") == 1e-4 and args.whole("x") == 2
    assert args.text("cp-sizes") == "2 2"


def test_names_are_read_with_dashes_or_underscores() -> None:
    """A file's ``hidden_size`` is the command line's ``--hidden-size``."""
    assert Arguments({"--hidden_size": "8"}).whole("hidden-size") == 8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("num-layers 12", "begin with --"),
        (f"{GPT} --num-layers twelve", "--num-layers is a number"),
        (f"{GPT} --num-layers 1.5", "whole number"),
        (f"{GPT} --num-layers 0", "1..4096"),
        (f"{GPT} --tokenizer-type Odd", "give --vocab-size"),
        (f"{GPT} --hybrid-layer-pattern M-M", "state-space"),
        (f"{GPT} --num-experts 8 --moe-layer-freq ([0]*3)", "names each of 12"),
        (f"{GPT} --num-experts 8 --moe-layer-freq import", "such as"),
        (f"{GPT} --pipeline-model-parallel-size 5", "fill 5 pipeline ranks"),
        (f"{GPT} --tensor-model-parallel-size 3", "multiple of tp pp cp"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(words: str, reason: str) -> None:
    """Each fault names the argument."""
    with pytest.raises(InputError, match=reason.replace("(", "\\(")):
        read_run(Arguments.parse(shlex.split(words)), 8, "sm90")


def test_gpt_has_as_many_parameters_as_its_paper() -> None:
    """GPT-2's formula: 12 l h^2 + 13 l h, embeddings (V + s) h and a last norm 2 h."""
    arch, h = architecture_of(arguments()), 512
    blocks = 12 * (12 * h * h + 13 * h)
    assert parameter_count(arch) == blocks + (50257 + 1024) * h + 2 * h


def test_a_vocabulary_is_given_or_the_tokenizer_s() -> None:
    """``--vocab-size`` comes first."""
    assert vocabulary(arguments("--vocab-size 131073")) == 131073
    assert vocabulary(arguments("--tokenizer-type Llama2Tokenizer")) == 32000


def test_latent_attention_and_experts_are_read() -> None:
    """DeepSeek-V3's arguments give its layers: three dense, the rest sparse."""
    args = arguments(
        "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 "
        "--num-experts 64 --moe-layer-freq ([0]*3+[1]*9) --swiglu "
        "--moe-ffn-hidden-size 2048 "
        "--moe-router-topk 8 --moe-router-score-function sigmoid --mtp-num-layers 1"
    )
    arch = architecture_of(args)
    assert [layer.is_moe for layer in arch.layers] == [False] * 3 + [True] * 9
    assert isinstance(arch.layers[0].attention, LatentAttention)
    found = arch.layers[-1].feed_forward
    assert isinstance(found, MoE) and (found.experts, found.topk) == (64, 8)
    assert found.scoring == "sigmoid" and arch.mtp_layers == 1


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--pipeline-model-parallel-size 4", [[3], [3], [3], [3]]),
        (
            "--pipeline-model-parallel-size 2 "
            "--num-layers-per-virtual-pipeline-stage 2",
            [[2, 2, 2], [2, 2, 2]],
        ),
        (
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2 "
            "--decoder-last-pipeline-num-layers 2",
            [[2], [4], [4], [2]],
        ),
        (
            "--pipeline-model-parallel-size 4 --num-layers 6 "
            "--num-virtual-stages-per-pipeline-rank 2 "
            "--account-for-embedding-in-pipeline-split "
            "--account-for-loss-in-pipeline-split",
            [[0, 1], [1, 1], [1, 1], [1, 0]],
        ),
        (
            "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
            "'Et*4|t*2|t*4|t*2L'",
            [[4, 4], [2, 2]],
        ),
    ],
)
def test_layers_lie_where_megatron_puts_them(
    more: str, expected: list[list[int]]
) -> None:
    """Even, interleaved, uneven ends, ends that count as layers, a written layout."""
    assert layers(more) == expected


@pytest.mark.parametrize(
    ("more", "generation", "expected"),
    [
        ("", "sm80", "flash"),
        ("", "sm90", "fused"),
        ("", "sm100", "fused"),
        ("--deterministic-mode", "sm90", "fused"),
        ("--deterministic-mode", "sm100", "flash"),
        ("--attention-backend unfused", "sm90", "unfused"),
        ("--attention-backend flash", "sm90", "flash"),
        ("--transformer-impl local", "sm90", "unfused"),
    ],
)
def test_attention_is_asked_for_or_the_engine_s_choice(
    more: str, generation: str, expected: str
) -> None:
    """TransformerEngine prefers cuDNN from 9.0 on, but not where it cannot repeat."""
    assert attention_of(arguments(more), generation) == expected


def test_a_run_has_the_launch_s_sizes() -> None:
    """dp, experts' dp and micro-batches follow from the devices and the batch."""
    run = read_run(
        arguments("--tensor-model-parallel-size 2 --sequence-parallel"), 8, "sm90"
    )
    dims = run.model.dims
    found = {
        n: value(getattr(dims, n), {}) for n in ("tp", "dp", "m", "sp", "sharding")
    }
    assert found == {"tp": 2, "dp": 4, "m": 2, "sp": 1, "sharding": 0}
    assert run.model.context.training.dropout


def test_fusions_are_on_unless_they_are_switched_off() -> None:
    """The launcher's defaults, and each ``--no-...``."""
    plain, off = kernels_of(arguments()), kernels_of(arguments("--no-rope-fusion"))
    assert plain.rope_fusion and plain.gradient_fusion and not off.rope_fusion
    assert not kernels_of(arguments("--no-bias-gelu-fusion")).activation_fusion
    assert kernels_of(arguments("--swiglu --no-bias-gelu-fusion")).activation_fusion


_NAMES = st.sampled_from(
    [
        "num-layers",
        "hidden-size",
        "num-attention-heads",
        "seq-length",
        "vocab-size",
        "num-experts",
        "moe-layer-freq",
        "moe-router-topk",
        "micro-batch-size",
        "pipeline-model-parallel-size",
        "tensor-model-parallel-size",
        "num-virtual-stages-per-pipeline-rank",
        "pipeline-model-parallel-layout",
        "recompute-granularity",
        "recompute-modules",
        "cp-comm-type",
        "moe-expert-capacity-factor",
        "num-query-groups",
        "mtp-num-layers",
    ]
)
_WORDS = st.one_of(
    st.integers(-3, 99).map(str), st.text(max_size=8), st.sampled_from(["full", "t|L"])
)


@given(st.dictionaries(_NAMES, _WORDS, max_size=4))
def test_no_argument_can_crash_the_reader(odd: dict[str, str]) -> None:
    """Whatever is written, a run or one clear sentence comes back."""
    words = shlex.split(GPT) + [w for k, v in odd.items() for w in (f"--{k}", v)]
    try:
        read_run(Arguments.parse(words), 8, "sm90")
    except InputError as error:
        assert str(error)
