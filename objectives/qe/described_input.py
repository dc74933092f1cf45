"""What is to be predicted where pw.x is not asked: an input, the facts of one, or both."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from objectives.base import PlanError
from objectives.qe import pseudo
from objectives.qe.check import problems
from objectives.qe.deck import Deck
from objectives.qe.description import described, valence_electrons
from objectives.qe.known_sizes import KnownSizes
from objectives.qe.lattice import UndescribedError
from objectives.qe.options import QeOptions, input_text
from objectives.qe.output import Workload

_NO_INPUT = Deck("&CONTROL\n/\n&SYSTEM\n/\n&ELECTRONS\n/\n")
_FROM_FACTS = "the facts of the file count"


@dataclass(frozen=True)
class DescribedInput:
    """A problem of pw.x: what it is called, its input, its size, what tells it from others, how its size is known."""

    name: str
    deck: Deck
    size: Workload
    identity: Mapping[str, str]
    note: str


def described_input(options: QeOptions) -> DescribedInput:
    """Return the problem that the options name; facts go before what the input says.

    Raises:
        PlanError: a file is not there or has errors, or they do not say how large the problem is.
    """
    known, identity = KnownSizes(), {}
    if options.facts is not None:
        path = Path(options.facts).expanduser()
        known = KnownSizes.read(path)
        identity["facts"] = hashlib.sha256(path.read_bytes()).hexdigest()
        if "input" not in options.model_fields_set:
            return DescribedInput(
                options.facts, _NO_INPUT, known.workload(), identity, f"nothing is run: {_FROM_FACTS}"
            )
    name, home, text = input_text(options.input)
    identity["input"] = hashlib.sha256(text).hexdigest()
    deck = Deck(text.decode("utf-8", errors="surrogateescape"))
    if wrong := problems(deck, has_saved=True):
        raise PlanError(f"{name}: {problem}" for problem in wrong)
    try:
        valence = {} if known.electrons is not None else _valence(deck, home)
        how = _FROM_FACTS if options.facts else f"{options.program} is not here"
        note = f"nothing is run: the size is worked out from the input; {how}"
        return DescribedInput(f"input {name}", deck, described(deck, valence, known), identity, note)
    except UndescribedError as error:
        msg = (
            f"{name} alone does not say how large the problem is: {error}; say what is missing in a TOML file "
            f"(--facts FILE), or ask where {options.program} is installed"
        )
        raise PlanError(msg) from error


def _valence(deck: Deck, home: Path) -> dict[str, float]:
    """Return the valence electrons of the atom of each pseudopotential; of ours without making it."""
    ours = {name: electrons for name in deck.pseudopotentials if (electrons := pseudo.recipe_valence(name))}
    others = [name for name in deck.pseudopotentials if name not in ours]
    files, missing = pseudo.locate(others, pseudo.search_folders(deck, home, os.environ))
    if missing:
        msg = f"{'; '.join(missing)} (it tells the number of electrons: electrons = N)"
        raise UndescribedError(msg)
    return ours | {name: valence_electrons(path) for name, path in files.items()}
