"""Check whether an input of pw.x can be tuned: report everything that is wrong with it at once."""

from objectives.qe.deck import Deck
from objectives.qe.saved import is_continuation

CALCULATIONS = ("scf", "relax", "vc-relax", "nscf", "bands")
_NEEDED_GROUPS = ("control", "system", "electrons")
_ORDER = ("control", "system", "electrons", "ions", "cell")
_MORE_GROUPS = {"relax": ("ions",), "vc-relax": ("ions", "cell")}
_OTHERS = {
    **dict.fromkeys(
        ("md", "vc-md"),
        "its length is a number of steps, and long runs differ by chance, so that no answer can check them (tune an "
        "scf of its first structure: each step is one)",
    ),
    "ensemble": "runs are not compared by its ensemble of energies",
}
_CONTINUES = (
    'the input continues from another run: name the scf input to run once before it (prepared_by = "scf.in"), or '
    'the outdir that it left (saved = "FOLDER"); each trial gets a copy'
)


def find_problems(deck: Deck, *, has_saved: bool = False) -> list[str]:
    """Return a sentence for each reason why the input cannot be tuned; none if it can.

    With `has_saved` there are saved files from which the input can continue.
    """
    if "\x00" in deck.text or not deck.groups:
        return ["this is not an input of pw.x: it has no namelist (&CONTROL ... /)"]
    calculation = deck.calculation
    needed = (*_NEEDED_GROUPS, *_MORE_GROUPS.get(calculation, ()))
    found = [
        f"namelist &{name.upper()} is missing: pw.x needs it, if only as '&{name.upper()} /'"
        for name in needed
        if name not in deck.groups
    ]
    in_order = [name for name in deck.groups if name in _ORDER]
    if in_order != sorted(in_order, key=_ORDER.index):
        found.append(f"pw.x reads the namelists in this order: {', '.join(f'&{name.upper()}' for name in _ORDER)}")
    ignored = deck.ignored_cards
    found.extend(
        f"pw.x ignores the line {line!r}: the name of a card is in capitals, and a blank follows it" for line in ignored
    )
    found.extend(
        f"card {card} is missing"
        for card in ("ATOMIC_SPECIES", "K_POINTS")
        if deck.card(card) is None and not any(line.upper().startswith(card) for line in ignored)
    )
    if deck.card("ATOMIC_SPECIES") is not None and not deck.pseudopotentials:
        found.append("card ATOMIC_SPECIES names no pseudopotential: a line of it is 'Ti 47.867 Ti.UPF'")
    if calculation not in CALCULATIONS:
        reason = _OTHERS.get(calculation, "pw.x has no such calculation")
        found.append(f"calculation = {calculation!r} cannot be tuned: {reason}; can be: {', '.join(CALCULATIONS)}")
    if deck.get_float("electron_maxstep", 1.0) < 1.0:
        found.append(f"electron_maxstep = {deck.get('electron_maxstep')}: pw.x needs at least one iteration")
    if deck.get_float("nstep", 1.0) < 1.0:
        found.append(f"nstep = {deck.get('nstep')}: pw.x then only describes the problem, and computes nothing")
    if is_continuation(deck) and not has_saved:
        found.append(_CONTINUES)
    return found
