"""Files of measurements: detect the kind of a file, and call its reader."""

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from autotune.errors import ImportFileError
from autotune.performance.measurements.delimited import csv_table, read_table, row_table
from autotune.performance.measurements.imported import FindMachine, ImportedMeasurements
from autotune.performance.measurements.kernel_tuner import read_tuned
from autotune.performance.measurements.mapping import read_mapping
from autotune.performance.measurements.pwscf import SIGN, OutputFile, read_outputs

_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 2**16  # modules, MPI and batch systems may print before pw.x does
_MOST_BYTES = 2**28
_BESIDE = (".err", ".stderr")


def read_any(
    path: Path, mapping: Path | None, given: Mapping[str, str | None], place: FindMachine
) -> ImportedMeasurements:
    """Read a file or a folder of any known kind.

    Args:
        path: The file or the folder.
        mapping: The mapping of a CSV file.
        given: Values from the command line, which replace those of the file.
        place: Returns the facts of a machine.

    Raises:
        ImportFileError: The kind of the file is unknown, or it has errors; the message says what to do.
    """
    return _read_by_kind(path, mapping, given, place).without_unusable()


def _read_by_kind(
    path: Path, mapping: Path | None, given: Mapping[str, str | None], place: FindMachine
) -> ImportedMeasurements:
    if path.is_dir() or (mapping is None and _seems_output(path)):
        return _read_outputs(path, given, place)
    if path.suffix == ".toml":
        return _read_mapped(path, None, given, place)
    if mapping is not None:
        return _read_mapped(mapping, path, given, place)
    text = _text(path)
    if text.lstrip().startswith("{"):
        return read_tuned(text, str(path), {**given, "source": given.get("source") or str(path.resolve())}, place)
    columns = text.lstrip().partition("\n")[0].strip()
    msg = (
        f"{path} is neither a cache of Kernel Tuner, nor T4 results, nor an output of pw.x. A CSV file needs a mapping "
        f"that says what its columns mean: --mapping FILE, see docs/import.md; its first line: {columns[:200]!r}"
    )
    raise ImportFileError(msg)


def _read_mapped(
    path: Path, csv: Path | None, given: Mapping[str, str | None], place: FindMachine
) -> ImportedMeasurements:
    mapping = read_mapping(path, given, csv.absolute() if csv is not None else None)
    if mapping.csv is None:
        return read_table(row_table(mapping.rows), mapping, place, str(path))
    beside = path.parent / mapping.csv
    return read_table(csv_table(_text(beside), str(beside)), mapping, place, str(path))


def _read_outputs(path: Path, given: Mapping[str, str | None], place: FindMachine) -> ImportedMeasurements:
    if not given.get("machine"):
        msg = f"outputs of pw.x do not say on what machine they were made; say where with --machine NAME: {path}"
        raise ImportFileError(msg)
    source = given.get("source") or str(path.resolve())
    unreadable: list[str] = []
    imported = read_outputs(_outputs(path, unreadable), {**given, "source": source}, place)
    if not imported.measured and not imported.left_out and not unreadable:
        msg = f"there is no output of pw.x in {path}: none of its files has {SIGN!r} near its beginning"
        raise ImportFileError(msg)
    return replace(imported, left_out=(*imported.left_out, *unreadable))


def _outputs(path: Path, unreadable: list[str]) -> Iterator[OutputFile]:
    """Yield the outputs of pw.x in a folder and its subfolders, ordered by name."""
    for file in _files(path):
        try:
            if not _is_output(file):
                continue
            text = _read(file).decode("utf-8", errors="replace")
        except (OSError, EOFError, zlib.error) as error:
            unreadable.append(f"{file} cannot be read: {error}")
            continue
        yield OutputFile(str(file.relative_to(path)) if file != path else file.name, text, _stderr(file))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        # Skip named pipes: reading one would never end.
        yield from (file for name in sorted(names) if (file := Path(folder) / name).is_file())


def _seems_output(path: Path) -> bool:
    try:
        return path.is_file() and _is_output(path)
    except (OSError, EOFError, zlib.error):
        return False  # the reader of the file reports the error


def _is_output(path: Path) -> bool:
    with path.open("rb") as raw:
        head = raw.read(_HEAD_BYTES)
    if head.startswith(_GZIP):
        with gzip.open(path) as packed:
            head = packed.read(_HEAD_BYTES)
    return SIGN.encode() in head


def _stderr(path: Path) -> str:
    """Return the error output stored beside an output; empty without one."""
    for suffix in _BESIDE:
        beside = path.with_suffix(suffix)
        if beside != path and beside.is_file():
            return beside.read_bytes()[:_HEAD_BYTES].decode("utf-8", errors="replace")
    return ""


def _text(path: Path) -> str:
    try:
        return _read(path).decode("utf-8-sig")
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or 'it is broken'}"
    except (UnicodeDecodeError, EOFError, zlib.error):
        msg = f"{path} is no text, nor a compressed one"
    raise ImportFileError(msg)


def _read(path: Path) -> bytes:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
    with gzip.open(path) if packed else path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        msg = f"it is larger than {_MOST_BYTES // 2**20} MiB"
        raise OSError(msg)
    return bytes(content)
