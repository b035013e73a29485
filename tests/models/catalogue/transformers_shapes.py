"""What ``transformers`` builds from a configuration, in Megatron-Core's names.

Only names and layouts are translated here; every number is read off the parameters
that ``transformers`` created on the meta device.
"""

import re
from collections import defaultdict

#: Written for both: fields that transformers does not take, or would act on.
NOT_PASSED = ("model_type", "auto_map", "quantization_config", "architectures")
#: Families without code in transformers, which their files fetch from elsewhere.
SAME_CODE = {"kimi_k2": "deepseek_v3"}

LAYER = re.compile(r"(?:model|gpt_neox|transformer)\.(?:layers|h|blocks)\.(\d+)\.(.+)")
EXPERT = re.compile(r"(.*experts)\.\d+\.(\w+)\.weight")
ATTENTION = r"(?:self_attn|attention|attn)\."
MLP = r"(?:mlp|ffn|block_sparse_moe)\."
#: Pattern of a parameter inside a layer, our name, whether it is stored transposed.
RULES = [
    (ATTENTION + r"(?:[qkv]_proj|qkv_proj|query_key_value|Wqkv)", "linear_qkv", False),
    (ATTENTION + r"c_attn", "linear_qkv", True),
    (ATTENTION + r"(?:o_proj|dense|out_proj)", "linear_proj", False),
    (ATTENTION + r"c_proj", "linear_proj", True),
    (ATTENTION + r"q_a_proj", "linear_q_down_proj", False),
    (ATTENTION + r"q_b_proj", "linear_q_up_proj", False),
    (ATTENTION + r"kv_a_proj_with_mqa", "linear_kv_down_proj", False),
    (ATTENTION + r"kv_b_proj", "linear_kv_up_proj", False),
    (ATTENTION + r"(?:q_norm|q_a_layernorm)", "q_layernorm", False),
    (ATTENTION + r"k_norm", "k_layernorm", False),
    (ATTENTION + r"kv_a_layernorm", "kv_layernorm", False),
    (MLP + r"(?:gate|router)", "router", False),
    (MLP + r"shared_expert_gate", "shared_experts.gate", False),
    (
        MLP + r"shared_experts?\.(?:gate_proj|up_proj)",
        "shared_experts.linear_fc1",
        False,
    ),
    (MLP + r"shared_experts?\.down_proj", "shared_experts.linear_fc2", False),
    (
        MLP + r"(?:gate_proj|up_proj|gate_up_proj|dense_h_to_4h)",
        "mlp.linear_fc1",
        False,
    ),
    (MLP + r"c_fc", "mlp.linear_fc1", True),
    (MLP + r"(?:down_proj|dense_4h_to_h)", "mlp.linear_fc2", False),
    (MLP + r"c_proj", "mlp.linear_fc2", True),
]
OUTSIDE = {
    r"(?:model\.embed_tokens|gpt_neox\.embed_in|transformer\.wte)": "word_embeddings",
    r"transformer\.wpe": "position_embeddings",
    r"(?:model\.norm|gpt_neox\.final_layer_norm|transformer\.(?:ln_f|norm_f))": (
        "final_layernorm"
    ),
    r"(?:lm_head|embed_out)": "output_layer",
}
NORMS = re.compile(r"(\w*(?:layernorm|norm_\d|ln_\d))\.(weight|bias)")


def build(config):
    """Return the name and shape of every parameter of the model, tied ones once."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    family = SAME_CODE.get(config["model_type"], config["model_type"])
    passed = {k: v for k, v in config.items() if k not in NOT_PASSED}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **passed))
    return [(name, tuple(p.shape)) for name, p in model.named_parameters()]


def in_our_names(parameters, latent):
    """Return shapes by our names: those outside of layers, and those of each layer.

    Parameters
    ----------
    parameters
        Name and shape as transformers has them.
    latent
        Whether attention is latent, where ``q_proj`` is a projection of its own.
    """
    outside = {}
    layers = defaultdict(list)
    for name, shape in parameters:
        if match := LAYER.fullmatch(name):
            layers[int(match[1])].append((match[2], shape))
        else:
            outside[_outside(name)] = shape
    ordered = [_layer(layers[i], latent) for i in range(len(layers))]
    return outside, ordered


def _outside(name):
    stem, _, ending = name.rpartition(".")
    for pattern, ours in OUTSIDE.items():
        if re.fullmatch(pattern, stem):
            return f"{ours}.{ending}"
    raise AssertionError(f"no rule for {name}")


def _layer(parameters, latent):
    """Join projections that are one of ours, along the output dimension."""
    found = {}
    norms = []
    for name, shape in parameters:
        if match := NORMS.fullmatch(name):
            if match[1] not in norms:
                norms.append(match[1])
            found[f"norm{norms.index(match[1])}.{match[2]}"] = shape
            continue
        ours, shape = _expert(name, shape) or _plain(name, shape, latent)
        if ours in found:
            before = found[ours]
            assert before[1:] == shape[1:]
            shape = (before[0] + shape[0], *shape[1:])
        found[ours] = shape
    return _stacked(found)


def _expert(name, shape):
    """Translate a tensor of all experts; one expert's own is marked and stacked."""
    if match := EXPERT.fullmatch(name):
        number = re.search(r"experts\.(\d+)\.", name)[1]
        part = "linear_fc2" if match[2] in ("down_proj", "w2") else "linear_fc1"
        return f"expert {number} {part}", shape
    if match := re.fullmatch(r".*experts\.(gate_up|down)_proj(_bias)?", name):
        part = "linear_fc1" if match[1] == "gate_up" else "linear_fc2"
        return f"experts.{part}.{'bias' if match[2] else 'weight'}", shape
    return None


def _plain(name, shape, latent):
    stem, _, ending = name.rpartition(".")
    if ending == "sinks":
        return "softmax_offset", shape
    if latent and stem.endswith("q_proj"):
        return f"linear_q_proj.{ending}", shape
    for pattern, ours, transposed in RULES:
        if re.fullmatch(pattern, stem):
            joined = "_" if ours == "shared_experts.gate" else "."
            return f"{ours}{joined}{ending}", shape[::-1] if transposed else shape
    raise AssertionError(f"no rule for {name}")


def _stacked(found):
    for part in ("linear_fc1", "linear_fc2"):
        own = [name for name in found if re.fullmatch(rf"expert \d+ {part}", name)]
        shapes = {found.pop(name) for name in own}
        if own:
            (shape,) = shapes
            found[f"experts.{part}.weight"] = (len(own), *shape)
    return found
