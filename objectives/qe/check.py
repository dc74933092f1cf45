"""Whether an input of pw.x can be tuned: everything that is wrong with it at once."""

from objectives.qe.deck import Deck

CALCULATIONS = ("scf", "relax", "vc-relax")
_NEEDED_GROUPS = ("control", "system", "electrons")
_FROM_FILES = ("startingpot", "startingwfc")


def problems(deck: Deck) -> list[str]:
    """Return a sentence for each reason why the input cannot be tuned; none if it can."""
    if "\x00" in deck.text or not deck.groups:
        return ["this is not an input of pw.x: it has no namelist (&CONTROL ... /)"]
    missing = [name for name in _NEEDED_GROUPS if name not in deck.groups]
    found = [f"namelist &{name.upper()} is missing: pw.x needs it, if only as '&{name.upper()} /'" for name in missing]
    found.extend(f"card {card} is missing" for card in ("ATOMIC_SPECIES", "K_POINTS") if deck.card(card) is None)
    if deck.card("ATOMIC_SPECIES") is not None and not deck.pseudopotentials:
        found.append("card ATOMIC_SPECIES names no pseudopotential: 'Ti 47.867 Ti.UPF' is a line of it")
    return found + _what_cannot_be_repeated(deck)


def _what_cannot_be_repeated(deck: Deck) -> list[str]:
    found = []
    calculation = (deck.get("calculation") or "scf").lower()
    if calculation not in CALCULATIONS:
        reason = {
            "nscf": "it continues from another run's output; tune that scf run",
            "bands": "it continues from another run's output; tune that scf run",
            "md": "its length is a number of steps, not a converged answer that runs can be compared by",
            "vc-md": "its length is a number of steps, not a converged answer that runs can be compared by",
        }.get(calculation, "pw.x has no such calculation")
        found.append(f"calculation = {calculation!r} cannot be tuned: {reason}; can be: {', '.join(CALCULATIONS)}")
    if (deck.get("restart_mode") or "").lower() == "restart":
        found.append("restart_mode = 'restart' cannot be tuned: every trial starts from scratch; use 'from_scratch'")
    found.extend(
        f"{name} = 'file' cannot be tuned: a trial's own folder is empty at its start"
        for name in _FROM_FILES
        if (deck.get(name) or "").lower() == "file"
    )
    return found
