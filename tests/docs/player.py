"""Plays a page: writes its files and runs its commands, in order, in one folder."""

import math
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.page import ROOT, Block, Command, Page
from tests.support import warm
from tests.support.quick_study import QUICK

_SHIM = f'#!/bin/sh\nexec {sys.executable} -m autotune "$@"\n'
_STUDY = r"((?:^|&& )(?:[A-Z_]+=\S+ )*(?:autotune|\./run) study \S+)"
# A page says the port that the service has unless told otherwise; somebody may be using that.
_PORT = "8642"
_SERVE = r"(\bautotune serve\b)"
# With this configuration, curl fails if the server answers with an HTTP error.
_CURL = 'fail-with-body\nsilent\nshow-error\nnoproxy = "*"\n'
# Packages that a page installs go to a folder of the page, not to the environment of the tests; nothing is downloaded.
_INSTALL = r"python -m pip install -e (\S+)"
_PACKAGES = ".packages"
_INSTALLED = f"python -m pip install --quiet --no-index --no-build-isolation --no-deps --target {_PACKAGES} --upgrade"
# Syntax that only a shell understands, and the quotes in which it has no meaning.
_SHELL = re.compile(r"[&|<>;$`*?~(){}#\\]")
_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
_READY_S = 60.0
_END_S = 60.0


class Player:
    """A folder in which pages are played, and the environment of their commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / ".programs"
        programs.mkdir(exist_ok=True)
        for shim in (programs / "autotune", folder / "run"):
            shim.write_text(_SHIM, encoding="utf-8")
            shim.chmod(0o755)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AUTOTUNE_")},
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{folder / _PACKAGES}",
            "XDG_CONFIG_HOME": os.fspath(folder / ".config"),
            "COLUMNS": "120",
            "AUTOTUNE_NOISE": "accept",  # what else this machine does meanwhile changes no page
            "CURL_HOME": os.fspath(programs),
        }
        (programs / ".curlrc").write_text(_CURL, encoding="utf-8")
        self.port = _free_port()
        self.said: dict[str, str] = {}
        """The output of each command and of each block of Python."""

    def play(self, page: Page) -> None:
        """Play the whole page; whatever it started in the background is ended."""
        with self._background() as started:
            for block in page.blocks:
                if "file" in block.attributes:
                    target = self.folder / block.attributes["file"]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block.text, encoding="utf-8")
                elif block.is_python and not block.exempt:
                    text = block.text.replace(_PORT, self.port)
                    self.said[block.text] = self.run([sys.executable, "-c", text], f"{page.name}:{block.place}")
                for command in block.commands:
                    if not command.exempt:
                        self._play(command, f"{page.name}:{command.place}: {command.line}", started)

    def _play(self, command: Command, where: str, started: list[subprocess.Popen[bytes]]) -> None:
        line = re.sub(_INSTALL, rf"{_INSTALLED} \1", command.words).replace("PYTHONPATH=.", "PYTHONPATH=.:$PYTHONPATH")
        line = re.sub(_SERVE, rf"\1 --port {self.port}", shortened(line).replace(_PORT, self.port))
        if line.endswith("&"):
            started.append(self._start(line.removesuffix("&"), len(started), where))
            return
        if command.kept:
            name, inner = command.kept
            inner = re.sub(_SERVE, rf"\1 --port {self.port}", inner)
            self.environment[name] = self.run(shlex.split(inner), where).strip()
            return
        # A process that has imported autotune knows nothing of a package that the page has installed since.
        installed = (self.folder / _PACKAGES).exists()
        plain = line.startswith("autotune ") and not installed and not _SHELL.search(_QUOTED.sub("", line))
        argv = shlex.split(line) if plain else ["bash", "-c", line]
        self.said[command.words] = self.run(argv, where, command.exit_code)

    def run(self, argv: list[str], where: str = "", exit_code: int = 0) -> str:
        """Run one command to its end, which must be as expected; return what it printed."""
        if argv[0] == "autotune":
            ended = warm.autotune(self.folder, *argv[1:], environment=self.environment)
        else:
            ended = self._start_and_wait(argv)
        assert ended.returncode == exit_code, f"{where}\nexit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def _start_and_wait(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shutil.which(argv[0], path=self.environment["PATH"]) or argv[0], *argv[1:]],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def _start(self, line: str, number: int, where: str) -> subprocess.Popen[bytes]:
        log = self.folder / f".background-{number}"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        until = time.monotonic() + _READY_S
        # A background command prints something when it is ready.
        while not log.stat().st_size and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert process.poll() is None, f"{where}\nended at once: {log.read_text(encoding='utf-8')}"
        return process

    @contextmanager
    def _background(self) -> Iterator[list[subprocess.Popen[bytes]]]:
        started: list[subprocess.Popen[bytes]] = []
        try:
            yield started
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def shortened(line: str) -> str:
    """Return a command with less to do: about the root of the trials, few comparisons, two seeds of a replay.

    The root preserves the order of numbers of trials, so that a command that continues a study still adds trials. A
    command without a number gets five; the default of a study file is fifty.
    """
    line = re.sub(r"(autotune replay .*--seeds) \d+", r"\1 2", line)
    line = re.sub(r"(autotune confirm .*--max-pairs) \d+", r"\1 5", line)
    if "--rounds" not in line:
        line = re.sub(r"\bautotune ablate \S+", r"\g<0> --rounds 3", line)
    if "--repeats" not in line:
        line = re.sub(r"\bautotune sweep", r"\g<0> --repeats 3", line)
    if not re.search(_STUDY, line) or "--dry-run" in line:
        return line
    line = re.sub(r"--trials (\d+)", lambda found: f"--trials {math.isqrt(int(found[1])) + 2}", line)
    line = line.replace("--trials auto", "--trials auto --set budget.max_trials=4")
    if "--trials" not in line:
        line = re.sub(_STUDY, r"\1 --set budget.trials=5", line)
    return re.sub(_STUDY, rf"\1 {' '.join(QUICK)}", line)


def files(page: Page) -> list[Block]:
    """Return the blocks of a page that are files."""
    return [block for block in page.blocks if "file" in block.attributes]
