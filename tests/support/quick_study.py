"""Settings that complete a study in a few runs: sections of its file, or options of its command."""

ONE_RUN = """
[repeats]
max_runs = 1
warm_up_runs = 0
baseline_runs = 1
"""
THREE_PAIRS = """
[verdict]
candidates = 1
pairs = 3
max_pairs = 3
rounds = 2
confidence = 0.75
"""
QUICK = [
    word
    for change in (
        "verdict.confidence=0.75",
        "verdict.pairs=3",
        "verdict.max_pairs=3",
        "verdict.rounds=2",
        "verdict.candidates=1",
        "repeats.max_runs=1",
        "repeats.warm_up_runs=0",
        "repeats.baseline_runs=1",
    )
    for word in ("--set", change)
]
"""Changes of a study file, as words of a command."""


def quick_sections(*, high: int = 1000, repeats: str = ONE_RUN, **budget: int) -> str:
    """Return the sections of a study with this budget and one parameter: x from 1, the default, to `high`."""
    limits = "".join(f"{name} = {value}\n" for name, value in budget.items())
    x = f'\n[space.parameters.x]\ntype = "integer"\nlow = 1\nhigh = {high}\ndefault = 1\n'
    return f"\n[budget]\n{limits}{repeats}{THREE_PAIRS}{x}"
