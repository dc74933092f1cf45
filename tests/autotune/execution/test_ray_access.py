"""Tokens keep other users out of a Ray."""

import tempfile
from pathlib import Path

import pytest

from autotune.errors import CannotRunHereError
from autotune.execution.ray_access import find_exposed_token, with_token


@pytest.mark.parametrize("mode", ["disabled", "k8s"])
def test_an_environment_that_lets_everybody_in_is_refused(tmp_path, mode):
    with pytest.raises(CannotRunHereError, match=f"RAY_AUTH_MODE={mode}.*unset RAY_AUTH_MODE"):
        with_token({"RAY_AUTH_MODE": mode}, tmp_path)


def test_a_token_of_rays_own_that_others_can_read_is_named(monkeypatch):
    with tempfile.TemporaryDirectory() as home:
        monkeypatch.setenv("HOME", home)
        token = Path(home) / ".ray" / "auth_token"
        token.parent.mkdir(mode=0o755)
        assert find_exposed_token() is None
        token.write_text("secret")
        token.chmod(0o644)
        assert find_exposed_token() is None  # nobody else may enter the home
        Path(home).chmod(0o711)
        assert find_exposed_token() == token
        token.chmod(0o600)
        assert find_exposed_token() is None
