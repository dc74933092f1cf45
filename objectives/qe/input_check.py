"""Check whether an input of pw.x can be tuned: report everything that is wrong with it at once."""

from objectives.qe.deck import Deck
from objectives.qe.saved import is_continuation

CALCULATIONS = ("scf", "relax", "vc-relax", "nscf", "bands")
_NEEDED_GROUPS = ("control", "system", "electrons")
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
    missing = [name for name in _NEEDED_GROUPS if name not in deck.groups]
    found = [f"namelist &{name.upper()} is missing: pw.x needs it, if only as '&{name.upper()} /'" for name in missing]
    found.extend(f"card {card} is missing" for card in ("ATOMIC_SPECIES", "K_POINTS") if deck.card(card) is None)
    if deck.card("ATOMIC_SPECIES") is not None and not deck.pseudopotentials:
        found.append("card ATOMIC_SPECIES names no pseudopotential: a line of it is 'Ti 47.867 Ti.UPF'")
    calculation = deck.calculation
    if calculation not in CALCULATIONS:
        is_dynamics = calculation in {"md", "vc-md"}
        length = "its length is a number of steps, not a converged answer that runs can be compared by"
        reason = length if is_dynamics else "pw.x has no such calculation"
        found.append(f"calculation = {calculation!r} cannot be tuned: {reason}; can be: {', '.join(CALCULATIONS)}")
    if deck.get_float("electron_maxstep", 1.0) < 1.0:
        found.append(f"electron_maxstep = {deck.get('electron_maxstep')}: pw.x needs at least one iteration")
    if deck.get_float("nstep", 1.0) < 1.0:
        found.append(f"nstep = {deck.get('nstep')}: pw.x then only describes the problem, and computes nothing")
    if is_continuation(deck) and not has_saved:
        found.append(_CONTINUES)
    return found
