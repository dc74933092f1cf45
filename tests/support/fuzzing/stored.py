"""Parsers of stored records, tokens, and bodies of requests."""

# ruff: noqa: PLC0415  imports wait until the fuzzer can instrument them

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.fuzzing.target import ROOT, Made, Target, of_file


def _stored(module: str, name: str) -> Callable[[], Made]:
    def make() -> Made:
        from importlib import import_module

        kind = getattr(import_module(module), name)

        def read(data: bytes) -> object:
            try:
                document = json.loads(data)
            except (ValueError, RecursionError):
                return None
            return kind.from_dict(document).to_dict()

        return read, (ValueError,)

    return make


def _status() -> Made:
    from launchers.status import read_affinity, read_status
    from launchers.supervisor import AFFINITY_FILE, STATUS_FILE

    def read(path: Path) -> object:
        shutil.copy(path, path.with_name(AFFINITY_FILE))
        return read_status(path.parent), read_affinity(path.parent)

    return of_file(read, STATUS_FILE)


def _tokens() -> Made:
    from autotune.errors import StorageError
    from autotune.service.tokens import TokenBook

    return of_file(lambda path: TokenBook(path).known(), "tokens.json", StorageError)


def _body() -> Made:
    from pydantic import ValidationError

    from autotune.service.models.orders import MoreTrials, NewLabels, NewStudy
    from autotune.service.routes.asking import Ask, Renew, Tell
    from autotune.service.routes.predicting import Question

    kinds = (Ask, Tell, Renew, NewStudy, MoreTrials, NewLabels, Question)

    def read(data: bytes) -> object:
        for kind in kinds:
            try:
                kind.model_validate_json(data).model_dump_json()
            except ValidationError as error:
                error.errors()
        return None

    return read, ()


def _golden(name: str) -> tuple[str, ...]:
    golden = ROOT / "tests/autotune/records/stored.golden"
    lines = golden.read_text(encoding="utf-8").splitlines()
    return tuple(line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} "))


_STATUS = (
    (
        '{"state": "ended", "reason": "exited", "exit_code": 0, "elapsed_s": 1.0, "cpu_s": 1.0, '
        '"peak_memory_bytes": 5, "message": "", "affinity": null}'
    ),
)


_BODIES = (
    '{"worker": "w", "lease_s": 60}',
    '{"lease": "x", "metrics": {"time": 1.5}, "elapsed_s": 2}',
    '{"study": "qe", "name": "n", "set": ["budget.trials=3"]}',
    '{"tags": ["mine"], "note": "n", "archived": true}',
)


TARGETS = (
    Target("stored outcome", _stored("autotune.records.outcome", "Outcome"), words=_golden("Outcome")),
    Target("stored study", _stored("autotune.studyfile.definition", "Definition"), words=_golden("Definition")),
    Target("stored setting", _stored("autotune.records.measurement", "Setting"), words=_golden("Setting")),
    Target("stored measurement", _stored("autotune.records.measurement", "Measured"), words=_golden("Measured")),
    Target("status of a job", _status, words=_STATUS),
    Target(
        "tokens",
        _tokens,
        words=(
            '{"ann": {"sha256": "'
            + "0" * 64
            + '", "made": "2026-01-02T03:04:05+00:00", "scope": "look", "expires": null}}',
        ),
    ),
    Target("body of a request", _body, words=_BODIES),
)
