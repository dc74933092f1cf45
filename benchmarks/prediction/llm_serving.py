"""Read published measurements of LLM serving, from a folder that is not part of this project.

Cards and models are split into those that choose the method and those that only tell of it; the split was made before
any result was seen. "Intel PVC" and "Intel Max 1550" are one card.
"""

from collections import defaultdict
from pathlib import Path
from statistics import median

from autotune.machines.catalogue import find_machine
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import rows_of
from objectives.base import Metric
from objectives.shapes.shape import Shape, Term
from spaces import Value

RATE = Metric("tokens_per_s", "1/s", "maximize", "rate")
CARDS = {
    "Nvidia A100 GPU": "nvidia-a100",
    "Nvidia H100 GPU": "nvidia-h100",
    "AMD MI250 GPU": "amd-mi250",
    "Intel PVC GPU": "intel-max-1550",
    "Intel Max 1550": "intel-max-1550",
    "Nvidia GH200 GPU": "nvidia-gh200",
    "AMD MI300X GPU": "amd-mi300x",
    "Habana Gaudi2": "intel-gaudi2",
    "SambaNova SN40L": "sambanova-sn40l",
}
CHOOSING_CARDS = frozenset({"nvidia-a100", "nvidia-h100", "amd-mi250", "intel-max-1550"})
CHOOSING_MODELS = frozenset({"Llama-2-7b-hf", "Mistral-7B-v0.1", "Meta-Llama-3-70B", "Mixtral-8x7B-v0.1"})

# Weights in all and of one token, layers, and elements of keys and values for a token: the models' own pages.
MODELS = {
    "Mistral-7B-v0.1": (7.24e9, 7.24e9, 32, 65_536),
    "Meta-Llama-3-8B": (8.03e9, 8.03e9, 32, 65_536),
    "Llama-2-7b-hf": (6.74e9, 6.74e9, 32, 262_144),
    "Llama-2-70b-hf": (68.98e9, 68.98e9, 80, 163_840),
    "Mixtral-8x7B-v0.1": (46.7e9, 12.9e9, 32, 65_536),
    "Qwen2-7B": (7.62e9, 7.62e9, 28, 28_672),
    "Meta-Llama-3-70B": (70.55e9, 70.55e9, 80, 163_840),
    "Qwen2-72B": (72.71e9, 72.71e9, 80, 163_840),
    "Aquila-7B": (7.29e9, 7.29e9, 32, 262_144),
    "bloom-7b1": (7.07e9, 7.07e9, 30, 245_760),
    "DeciLM-7B": (7.04e9, 7.04e9, 32, 17_152),
    "gpt-j-6b": (6.05e9, 6.05e9, 28, 229_376),
    "llama-7b": (6.74e9, 6.74e9, 32, 262_144),
    "opt-6.7b": (6.66e9, 6.66e9, 32, 262_144),
    "Qwen1.5-7B": (7.72e9, 7.72e9, 32, 262_144),
}

# The seconds of a token, as a study file's `[model]` with `seconds` would say them: each token is computed, each step
# reads the weights once for the whole batch, and each sequence its own keys and values. Prompt and answer are as long.
_TERMS = (
    "2 * active_weights / (0.5 * gpu_flops_fp16 * devices)",
    "min(weights, active_weights * batch) / (0.6 * gpu_bandwidth_bytes_per_s * devices) / batch",
    "0.05 * min(weights, active_weights * batch) / (0.6 * gpu_bandwidth_bytes_per_s) / batch",
    "1.5 * tokens * cache / (0.6 * gpu_bandwidth_bytes_per_s * devices)",
    "layers * 2.5e-5 / batch",
    "(layers * 2e-5 if devices > 1 else 0) / batch",
    "2e-5",
)
SHAPE = Shape(tuple(Term(text, text, doubt=0.7) for text in _TERMS), level=0.5, inverse=True)


def serving(folder: Path) -> list[Measured]:
    """Return the measurements: the median of what was measured several times."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows_of(folder / "llm_inference_bench.csv.gz"):
        if row["Throughput"]:
            model = row["Model"].rpartition("/")[2]
            length, batch, devices = (row[name] for name in ("Input Output Length", "Batch Size", "Num of Hardware"))
            key = (CARDS[row["Hardware"]], row["Framework"], model, length, batch, devices)
            found[key].append(float(row["Throughput"]))
    settings: dict[tuple[str, ...], Setting] = {}
    measured = []
    for (card, framework, model, length, batch, devices), values in found.items():
        weights, active, layers, cache = MODELS[model]
        sizes: dict[str, Value] = {"weights": weights, "active_weights": active, "layers": layers, "cache": cache}
        facts = {**find_machine(card).facts, "framework": framework}
        made = Setting("llm", card, f"{model} {length}", RATE, facts, {**sizes, "tokens": int(length)})
        setting = settings.setdefault((card, framework, model, length), made)
        chosen: dict[str, Value] = {"batch": int(batch), "devices": int(devices)}
        measured.append(Measured(setting, chosen, median(values), runs=len(values)))
    return measured
