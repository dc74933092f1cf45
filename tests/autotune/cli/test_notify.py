"""--notify: who is told of the end of a session, and what; --quiet."""

import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer

from autotune.cli.common import open_display, print_json
from autotune.cli.notify import notify_at_end
from autotune.errors import BusyError

TELL = (
    "import os; open('told', 'w').write('|'.join(os.environ[f'AUTOTUNE_{name}'] "
    "for name in ('STUDY', 'EXIT_CODE', 'VERDICT'))); print('hello')"
)
COMMAND = f'{sys.executable} -c "{TELL}"'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_is_told_of_a_good_end_and_prints_nothing_into_the_result(folder, capfd):
    with notify_at_end(COMMAND, "melt") as end:
        end.study, end.verdict = "melt-2", "2 times; $(touch no-shell)"
    assert (folder / "told").read_text() == "melt-2|0|2 times; $(touch no-shell)"
    assert sorted(path.name for path in folder.iterdir()) == ["told"]
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BusyError("busy"), 6),
        (KeyboardInterrupt(), 130),
        (typer.Exit(130), 130),
        (typer.BadParameter("x"), 2),
        (ValueError(), 1),
    ],
)
def test_the_command_is_told_of_a_bad_end_too_and_the_error_goes_on(folder, error, code):
    with pytest.raises(type(error)), notify_at_end(COMMAND, "melt"):
        raise error
    assert (folder / "told").read_text() == f"melt|{code}|"


def test_a_command_that_fails_is_told_and_changes_nothing(capfd):
    with notify_at_end("false", "melt"):
        pass
    assert capfd.readouterr().err == "--notify: false: it ended with exit code 1\n"


@pytest.mark.parametrize("command", ["", "no-such-command x", "'unbalanced", "http://", "https://[x"])
def test_what_is_no_command_is_refused_before_anything_runs(command):
    with pytest.raises(typer.BadParameter), notify_at_end(command, "melt"):
        pytest.fail("it began")


@pytest.fixture
def web():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(404 if "gone" in self.path else 204)
            self.end_headers()

        def log_message(self, *_):
            pass

    posted = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_gets_the_result_as_json_and_nothing_else(web, monkeypatch, capfd):
    monkeypatch.setenv("MY_API_TOKEN", "hidden")
    address, posted = web

    def session():
        with notify_at_end(f"{address}/hook", "melt") as end:
            end.verdict = "the winner no longer wins"
            raise typer.Exit(10)

    with pytest.raises(typer.Exit):
        session()
    result = {"study": "melt", "exit_code": 10, "verdict": "the winner no longer wins"}
    assert posted == [("/hook", "application/json", result)]
    assert capfd.readouterr() == ("", "")


def test_an_address_that_does_not_take_it_is_told_without_its_path_and_changes_nothing(web, capfd):
    with notify_at_end(f"{web[0]}/gone/my-secret", "melt"):
        pass
    with notify_at_end("http://127.0.0.1:9/my-secret", "melt"):
        pass
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "--notify: 127.0.0.1: it answered 404 Not Found"
    assert "refused" in said[1]
    assert not any("secret" in line for line in said)


def test_who_is_told_has_a_bounded_time(monkeypatch, capfd):
    monkeypatch.setattr("autotune.cli.notify._PATIENCE_S", 0.05)
    with notify_at_end("sleep 5", "melt"):
        pass
    assert "--notify: sleep: not done within" in capfd.readouterr().err


def test_a_program_that_reads_the_result_need_not_wait_until_others_are_told(monkeypatch):
    pipe = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(pipe))
    print_json({"a": 1})
    assert json.loads(pipe.getvalue()) == {"a": 1}


def test_a_quiet_session_shows_nothing_but_how_it_was_stopped(capfd):
    def session():
        with open_display("stopped: go on so", quiet=True) as display:
            display.line("trial 0: 1 s")
            display.waits("waiting")
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit):
        session()
    assert capfd.readouterr() == ("", "stopped: go on so\n")
