"""The study file of a study in storage."""

from pydantic import ValidationError

from autotune.records.study import Definition
from autotune.studyfile.model import StudyFile


def study_of(definition: Definition) -> StudyFile:
    """Return the study file of a study's newest session.

    It is read leniently, so that results can be shown wherever they are: a section is as by default if it is missing,
    or cannot be read here (a batch system's plugin is not installed).
    """
    table = {key: value for key, value in definition.study.items() if key in StudyFile.model_fields}
    name = str(table.pop("name", ""))
    # A name is required; studies that programs make may have none.
    given = {"name": "study", "objective": definition.objective} | table
    try:
        study = StudyFile.model_validate(given)
    except ValidationError as error:
        wrong = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
        study = StudyFile.model_validate({key: value for key, value in given.items() if key not in wrong})
    return study.model_copy(update={"name": name})
