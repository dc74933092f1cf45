"""Names of studies, and paths that are no study file: the message says what helps."""

import pytest

from autotune import studyfile
from autotune.errors import StudyFileError


def test_a_file_whose_name_no_study_can_have_is_told_to_name_its_study(tmp_path):
    path = tmp_path / "ünï çode.toml"
    path.write_text('objective = "command"')
    with pytest.raises(StudyFileError, match=r'write name = "\.\.\." at the start of the file, got \'ünï çode\''):
        studyfile.load(path)
    path.write_text('name = "uni-code"\nobjective = "command"')
    assert studyfile.load(path).name == "uni-code"


def test_a_folder_is_no_study_file(tmp_path):
    with pytest.raises(StudyFileError, match="is a folder: give the path of a study file in it"):
        studyfile.find(str(tmp_path))
