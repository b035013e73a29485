"""megatron-core's own parser reads the layouts that are written."""

from __future__ import annotations

import pytest

from shardproof.models.dialects.pipeline_layout import PipelineLayout
from shardproof.solver.stages.result import letters

pytestmark = pytest.mark.slow
SIZES = [
    ((0, 2, 2, 2, 1, 0), 1, 2),
    ((3, 4, 4, 3), 0, 4),
    ((5, 3, *(4,) * 13, 1), 1, 16),
    ((2, *(2,) * 11, 1, *(2,) * 16, 1, 1, 1), 0, 16),
]


@pytest.mark.parametrize(("sizes", "mtp", "pp"), SIZES)
def test_the_framework_reads_the_same_layers(
    sizes: tuple[int, ...], mtp: int, pp: int
) -> None:
    name = "megatron.core.transformer.pipeline_parallel_layer_layout"
    module = pytest.importorskip(name)
    text = letters(sizes, mtp)
    parsed = module.PipelineParallelLayerLayout.parse_str_to_list(text)
    words = [[layer.name for layer in stage] for stage in parsed]
    assert [stage.count("decoder") for stage in words] == list(sizes)
    assert words[0][0] == "embedding"
    assert words[-1][-1] == "loss"
    assert words[-1].count("mtp") == mtp
    assert PipelineLayout.parse(text).chunks(pp) == len(sizes) // pp
    module.PipelineParallelLayerLayout(text, pp).validate_layer_layout(
        sum(sizes), mtp or None
    )
