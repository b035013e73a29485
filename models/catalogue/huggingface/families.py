"""The readers by ``model_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import dense, latent, mixtures, older

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...architecture import Architecture
    from ..node import Node

FAMILIES: dict[str, Callable[[Node, str], Architecture]] = {
    "llama": dense.llama,
    "mistral": dense.mistral,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "gemma2": dense.gemma2,
    "phi3": dense.phi3,
    "mixtral": mixtures.mixtral,
    "qwen2_moe": mixtures.qwen2_moe,
    "qwen3_moe": mixtures.qwen3_moe,
    "gpt_oss": mixtures.gpt_oss,
    "glm4_moe": mixtures.glm4_moe,
    "deepseek_v2": latent.deepseek_v2,
    "deepseek_v3": latent.deepseek_v3,
    "kimi_k2": latent.deepseek_v3,
    "gpt2": older.gpt2,
    "gpt_neox": older.gpt_neox,
    "mpt": older.mpt,
}
