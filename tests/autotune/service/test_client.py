"""The client: against a service that says what the test wants, over real connections."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from autotune import client as clients
from autotune.client import TOKEN_VARIABLE, Client, ServiceError


class Fake(BaseHTTPRequestHandler):
    """Answers with the next of `script`: a status, headers and content; None closes the connection unanswered."""

    protocol_version = "HTTP/1.1"

    def _answer(self):
        length = int(self.headers.get("Content-Length", 0))
        self.server.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
        said = self.server.script.pop(0)
        if said is None:
            self.close_connection = True
            return
        status, headers, content = said
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Connection" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815  the library's names

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """Say nothing: a client that goes away is part of some tests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Fake)
        self.asked, self.script = [], []


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def pauses(monkeypatch):
    found = []
    monkeypatch.setattr(clients.time, "sleep", found.append)
    return found


@contextmanager
def client_of(fake, *script, **options):
    fake.script += script
    with Client(f"http://127.0.0.1:{fake.server_port}", **options) as client:
        yield client


def said(value, status=200, **headers):
    return status, headers, json.dumps(value).encode()


BUSY = {"detail": "there are 128 requests at once already"}


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again_with_growing_pauses_and_not_before_it_says(fake, pauses, status):
    busy = (status, {"Retry-After": "7"}, b"{}")
    with client_of(fake, busy, (status, {}, b"{}"), (status, {"Retry-After": "Fri, 31 Dec"}, b""), said([])) as client:
        assert client.studies() == []
    assert pauses == [7.0, 1.5, 2.25]
    assert [one[:2] for one in fake.asked] == [("GET", "/studies")] * 4


def test_what_is_waited_for_is_said_once(fake, pauses, caplog):
    opening = said({"detail": "study 'mine': it is being opened"}, 503, **{"Retry-After": "1"})
    with client_of(fake, opening, opening, opening, said(None)) as client:
        client.study("mine")
    assert caplog.messages == ["study 'mine': it is being opened (asking again for up to 120 s)"]
    assert pauses == [1.0, 1.5, 2.25]


def test_one_that_stays_busy_is_given_up_in_bounded_time_with_what_it_said(fake, pauses):
    script = [said(BUSY, 503)] * 50
    with (
        client_of(fake, *script, patience_s=30.0) as client,
        pytest.raises(ServiceError, match="128 requests") as found,
    ):
        client.start("qe")
    assert (found.value.status, sum(pauses)) == (503, 30.0)
    assert "still so after 30 s" in str(found.value)
    assert len(fake.asked) == len(pauses) + 1


def test_a_connection_that_was_closed_meanwhile_is_made_anew(fake):
    with client_of(fake, said([]), None, said([{"name": "a"}])) as client:
        assert client.studies() == []
        assert client.studies() == [{"name": "a"}]


def test_after_an_answer_that_came_too_late_the_next_is_that_to_the_next_request(fake):
    with client_of(fake, said(["late"]), said(["right"])) as client:
        real = client._connection.getresponse

        def late():
            real()
            raise InterruptedError

        client._connection.getresponse = late
        with pytest.raises(InterruptedError):
            client.studies()
        client._connection.getresponse = real
        assert client.studies() == ["right"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"detail": "there is no study \'x\'"}', "there is no study 'x'"),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b"[1]", "[1]"),
        (b"\xff", "\ufffd"),
    ],
)
def test_a_refusal_says_why_whoever_it_comes_from(fake, content, message):
    with client_of(fake, (404, {}, content)) as client, pytest.raises(ServiceError) as found:
        client.study("x")
    assert (found.value.status, str(found.value)) == (404, message)


def test_the_token_of_this_users_service_is_read_for_each_request(fake, monkeypatch):
    found = iter(["first", "second", None])
    monkeypatch.setattr(clients, "read_start_token", lambda host, port: (host, port) == at and next(found))
    at = ("127.0.0.1", fake.server_port)
    with client_of(fake, said([]), said([])) as client:
        client.studies()
        client.studies()
    fake.script += [said([])]
    with Client(f"http://localhost:{fake.server_port}") as client:  # not ::1, where others may listen
        client.studies()
    assert [one[2].get("Authorization") for one in fake.asked] == ["Bearer first", "Bearer second", None]


def test_the_token_is_the_given_one_or_that_of_the_environment(fake, monkeypatch):
    shown = []
    for given, there in ((None, None), (None, "env"), ("own", "env")):
        if there is not None:
            monkeypatch.setenv(TOKEN_VARIABLE, there)
        with client_of(fake, said([]), token=given) as client:
            client.studies()
        shown.append(fake.asked[-1][2].get("Authorization"))
    assert shown == [None, "Bearer env", "Bearer own"]


def test_what_is_sent_is_what_was_meant(fake, monkeypatch):
    monkeypatch.setattr(clients.secrets, "token_hex", lambda _: "k")
    leased = {"lease": "l", "trial": 1, "run": 0, "series": "", "cap": None, "expires_s": 5.0}
    leased |= {"configuration": {"a": 1}}
    with client_of(fake, said(leased), (204, {}, b""), said({"trial": 1}), (204, {}, b"")) as client:
        assert client.ask("x", lease_s=5.0).configuration == {"a": 1}
        assert client.ask("x") is None
        client.tell("x", "l", value=2.0)
        client.delete("a b/../c")
    sent = [(method, path, json.loads(body or b"null")) for method, path, _, body in fake.asked]
    assert sent == [
        ("POST", "/studies/x/ask", {"lease_s": 5.0, "wait_s": 0.0, "key": "k"}),
        ("POST", "/studies/x/ask", {"lease_s": 600.0, "wait_s": 0.0, "key": "k"}),
        ("POST", "/studies/x/tell", {"lease": "l", "value": 2.0}),
        ("DELETE", "/studies/a%20b%2F..%2Fc", None),
    ]
    assert fake.asked[0][2]["Content-Type"] == "application/json"
    assert "Content-Type" not in fake.asked[-1][2]


def test_the_service_may_keep_who_asks_for_as_long_as_they_wait(fake):
    with client_of(fake, (204, {}, b""), said([]), timeout_s=5.0) as client:
        client.ask("x", wait_s=60.0)
        assert client._connection.sock.gettimeout() == 65.0
        client.studies()
        assert client._connection.sock.gettimeout() == 5.0


def test_trials_are_read_page_by_page(fake):
    pages = said({"trials": [0, 1], "next": 1}), said({"trials": [2], "next": None})
    with client_of(fake, *pages) as client:
        assert list(client.trials("x")) == [0, 1, 2]
    assert [one[1] for one in fake.asked] == ["/studies/x/trials?after=-1", "/studies/x/trials?after=1"]


def test_events_are_followed_until_the_study_is_gone(fake):
    events = (
        b': alive\n\nid: 1\nevent: study\ndata: {"state": "running: \xc3\xa9"}\n\n'
        b': alive\n\nid: 2\nevent: study\ndata: {"state": "paused"}\n\n'
        b'id: 3\nevent: gone\ndata: {"name": "x"}\n\nid: 4\nevent: study\ndata: {}\n\n'
    )
    with client_of(fake, (200, {"Connection": "close"}, events), said(BUSY, 503)) as client:
        assert [one["state"] for one in client.follow("x")] == ["running: é", "paused"]
        with pytest.raises(ServiceError, match="at once already"):
            next(client.follow())
    assert [one[1] for one in fake.asked] == ["/studies/x/events", "/events"]


@pytest.mark.parametrize("address", ["127.0.0.1:8642", "ftp://host", "http://", ""])
def test_what_is_no_address_is_said_at_once(address):
    with pytest.raises(ValueError, match="looks like http"):
        Client(address)


def test_a_unix_socket_is_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = [(200, {}, b'[{"name": "qe"}]'), None, (200, {}, b"[]")]

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_UNIX

        def server_bind(self):
            self.socket.bind(self.server_address)

    class Quiet(Fake):
        def address_string(self):
            return "here"

    with Server("s.sock", Quiet) as server:
        server.script, server.asked = script, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Client("unix:s.sock", token="mine") as client:
            assert client.studies() == [{"name": "qe"}]
            assert client.studies() == []
        server.shutdown()
    assert {(path, headers["Authorization"]) for _, path, headers, _ in server.asked} == {("/studies", "Bearer mine")}
    with pytest.raises(FileNotFoundError):
        Client("unix:other.sock").studies()
    with pytest.raises(ValueError, match="or unix:PATH"):
        Client("unix:")


def test_an_ask_that_got_no_answer_is_made_again_with_its_key(fake):
    run = {"lease": "l", "trial": 1, "run": 0, "series": "", "configuration": {}, "cap": None, "expires_s": 5.0}
    with client_of(fake, None, None, said(run), (204, {}, b""), said(run)) as client:
        with pytest.raises(ConnectionError):
            client.ask("mine")
        assert [client.ask("mine") is None for _ in range(3)] == [False, True, False]
    keys = [json.loads(content)["key"] for *_, content in fake.asked]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3
