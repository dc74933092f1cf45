"""A study file that an agent wrote: it is read, and nothing that it names is run, imported or opened."""

from typing import Any

from autotune.lockfile import temporary_folder


def checked(text: str) -> dict[str, Any]:
    """Return what is wrong with a study file, and what it names that its owner would run."""
    from autotune.machines.this_machine import this_machine  # noqa: PLC0415  the planning imports much
    from autotune.planning.check import check  # noqa: PLC0415
    from launchers.local import local_launcher  # noqa: PLC0415

    with temporary_folder("agent") as folder:
        path = folder / "study.toml"
        path.write_text(text, encoding="utf-8")
        report = check(path, (), this_machine(), local_launcher(), static=True)
    return {
        "valid": not report.mistakes,
        "mistakes": [str(problem) for problem in report.mistakes],
        "names": report.notes,
        "next": "nothing was run; only the owner can put a study file into the catalogue",
    }
