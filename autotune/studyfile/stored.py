"""The study file of a stored study."""

import functools
import logging
from typing import Any

from pydantic import ValidationError

from autotune.records.study import Definition
from autotune.studyfile.model import StudyFile

_log = logging.getLogger(__name__)


def study_of(definition: Definition) -> StudyFile:
    """Return the study file of a study's newest session.

    Results can be shown on any machine. A section that is invalid here, for example because the plugin of its batch
    system is not installed, gets its default, and a warning names it once.
    """
    table = {key: value for key, value in definition.study.items() if key in StudyFile.model_fields}
    name = str(table.pop("name", ""))
    # A study file needs a name, but a study that a program created may have none.
    given: dict[str, Any] = {"name": "study", "objective": definition.objective} | table
    try:
        study = StudyFile.model_validate(given)
    except ValidationError as error:
        unreadable = {str(problem["loc"][0]): problem["msg"] for problem in error.errors() if problem["loc"]}
        for section, reason in unreadable.items():
            _warn_once(f"study {name!r}: cannot read {section!r} as stored, so its default is used: {reason}")
        study = StudyFile.model_validate({key: value for key, value in given.items() if key not in unreadable})
    return study.model_copy(update={"name": name})


@functools.cache
def _warn_once(message: str) -> None:
    _log.warning(message)
