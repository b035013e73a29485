"""Run one of the benchmarks; each reads its own options."""

from __future__ import annotations

from importlib import import_module

from ...models.errors import unknown_name

#: Benchmarks by the name a user types, and what each is for.
BENCHMARKS = {
    "cases_deepseek": "DeepSeek-V3 on 256 MI355X: published stages and chosen ones",
    "cases_mixtral": "Mixtral 8x22B on 32 MI355X: plans of Primus and the optimum",
    "explain": "print points, conflicts and CPU seconds of requests that cannot be met",
    "enumerate": "count the spaces of five workloads, by arrays and by CP-SAT",
    "legality": "judge configurations as Megatron does, and compare with its verdicts",
    "memory": "compare the ledger with recorded tensors, case by case",
    "memory-peaks": "compare whole ranks' peaks with published ones, and the verdicts",
    "optimum": "print gaps and CPU seconds of chosen stages, and what the proof costs",
    "pipeline": "print the rates of the pipeline simulator and the published idle",
    "profiles": "print what the fits of kernels miss on rows left out, and bands",
    "projections": "print how many step times a second one core projects",
    "validation": "compare projected step times with published ones, by source",
    "verdict": "compare the rules with what the frameworks themselves answered",
}


def run(name: str, words: list[str]) -> int:
    """Run a benchmark with its own words and return its exit code.

    Raises
    ------
    InputError
        If there is no such benchmark.
    """
    if name in ("-h", "--help"):
        for known, purpose in BENCHMARKS.items():
            print(f"shardproof bench {known:<13} {purpose}")
        return 0
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    module = import_module(f"shardproof.benchmarks.{name.replace('-', '_')}")
    return int(module.main(words) or 0)
