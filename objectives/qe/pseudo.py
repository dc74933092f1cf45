"""Pseudopotentials: where an input's are, and how ld1.x makes those of the shipped inputs.

The parameters of the generated ones are data files (`studies/inputs/*.ld1`) from pslibrary (A. Dal Corso,
https://dalcorso.github.io/pslibrary/, GPL-2.0-or-later); see the notice beside them.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from objectives.base import PlanError
from objectives.qe.deck import Deck

SYSTEM_FOLDER = Path("/usr/share/espresso/pseudo")  # compiled into Debian's pw.x
_TIMEOUT_S = 120
_MAX_LINE = 200  # pw.x 6.7 cannot read lines of over 1024 characters, although its own ld1.x writes them
_NUMBERS_A_LINE = 4
_OCCUPIED = re.compile(r"^\d[SPDF]\s+\d+\s+\d+\s+(-?[\d.]+)", re.MULTILINE)
_FILE_NAME = re.compile(r"file_pseudopw\s*=\s*'([^']+)'")


def search_folders(deck: Deck, input_folder: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders in which pw.x would look for the input's pseudopotentials, in that order.

    A relative `pseudo_dir` starts from where pw.x is started, which is nearly always the input's own folder.
    """
    given = deck.get("pseudo_dir")
    if given:
        path = Path(given).expanduser()
        folders = [path] if path.is_absolute() else [input_folder / path, Path.cwd() / path]
    else:
        folders = [Path(environment["ESPRESSO_PSEUDO"])] if environment.get("ESPRESSO_PSEUDO") else []
        folders.append(Path.home() / "espresso" / "pseudo")
    return tuple(dict.fromkeys([*folders, SYSTEM_FOLDER]))


def locate(names: Sequence[str], folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Return the file of each name, and a sentence for each name without one."""
    found: dict[str, Path] = {}
    errors: list[str] = []
    for name in names:
        places = [folder / name for folder in folders if (folder / name).is_file()]
        if places:
            found[name] = places[0].resolve()
        else:
            looked = ", ".join(str(folder) for folder in folders)
            errors.append(f"pseudopotential {name} was not found; looked in {looked}")
    return found, errors


def gather(files: Mapping[str, Path], folder: Path) -> Path:
    """Return one folder that holds all `files` by name: their own if they share one, else `folder` with links."""
    homes = {path.parent for name, path in files.items() if path.name == name}
    if len(homes) == 1 and all(path.name == name for name, path in files.items()):
        return homes.pop()
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        link = folder / name
        if link.is_symlink() and link.readlink() != path:
            link.unlink()
        if not link.is_symlink():
            link.symlink_to(path)
    return folder


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of generated pseudopotentials."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "autotune" / "pseudo"


def generate(names: Sequence[str], folder: Path, program: str = "ld1.x") -> None:
    """Make the pseudopotentials that have a shipped recipe and are missing from `folder`.

    Raises:
        PlanError: ld1.x is missing or failed.
    """
    recipes = _recipes()
    wanted = [name for name in names if name in recipes and not (folder / name).is_file()]
    if not wanted:
        return
    found = shutil.which(program)
    if found is None:
        msg = f"{program}, which makes {', '.join(wanted)}, is missing; install quantum-espresso, or `module load` it"
        raise PlanError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two studies may start at once
        for name in wanted:
            if not (folder / name).is_file():
                _generate_one(name, recipes[name], found, folder)


def rewrap(text: str) -> str:
    """Return UPF text without the long lines that pw.x 6.7 cannot read: few numbers or one attribute a line."""
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= _MAX_LINE:
            lines.append(line)
        elif line.lstrip().startswith("<"):
            lines.extend(re.sub(r'" (?=\w+=)', '"\n      ', line).splitlines())
        else:
            words = line.split()
            lines.extend(
                "  " + "  ".join(words[k : k + _NUMBERS_A_LINE]) for k in range(0, len(words), _NUMBERS_A_LINE)
            )
    return "\n".join(lines) + "\n"


def recipe_valence(name: str) -> float | None:
    """Return the valence electrons of a pseudopotential that has a shipped recipe; None without one."""
    recipe = _recipes().get(name)
    return None if recipe is None else sum(max(0.0, float(occupied)) for occupied in _OCCUPIED.findall(recipe))


def _recipes() -> dict[str, str]:
    """Return the shipped inputs of ld1.x, by the name of the file that each makes."""
    texts = [
        entry.read_text(encoding="ascii")
        for entry in (resources.files("studies") / "inputs").iterdir()
        if entry.name.endswith(".ld1")
    ]
    return {match[1]: text for text in texts if (match := _FILE_NAME.search(text))}


def _generate_one(name: str, recipe: str, program: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        try:
            run = subprocess.run(
                [program],
                input=recipe,
                cwd=scratch,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
                env={**os.environ, **allowed},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            msg = f"{program} could not make {name}: {error}"
            raise PlanError(msg) from error
        made = Path(scratch) / name
        if not made.is_file():
            errors = [line.strip() for line in f"{run.stdout}\n{run.stderr}".splitlines() if "rror" in line]
            msg = f"{program} did not make {name}: {' '.join(errors[:3]) or f'exit code {run.returncode}'}"
            raise PlanError(msg)
        text = rewrap(made.read_text(encoding="utf-8", errors="replace"))
        made.write_text(text, encoding="utf-8")
        made.replace(folder / name)
