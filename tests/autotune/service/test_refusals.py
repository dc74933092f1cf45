"""What is refused, as docs/service.md lists it: every row of its table, on a real service where that is quick."""

import re
import socket
from pathlib import Path

import pytest

from tests.autotune.service import test_access, test_workers
from tests.autotune.service.serving import serving

DOCS = Path(__file__).parents[3] / "docs" / "service.md"

JSON = "Content-Type: application/json\r\n"


TOKEN = "@token\r\n"  # the header with the service's own token takes its place


def request(line, headers="", body="", host="127.0.0.1", token=TOKEN):
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{headers}{length}\r\n{body}"


def post(body, headers=JSON, line="POST /studies"):
    return request(line, headers, body)


# Of each row of the table some requests, and what they get.
REQUESTS = {
    "no token": {401: [request("GET /studies", token=""), request("POST /studies", token="", body="{}")]},
    "a wrong token, or one that has expired": {401: [request("GET /studies", token="Authorization: Bearer x\r\n")]},
    "a body for a path that needs no token": {
        413: [request("GET /health", body="{}"), request("GET /", "Transfer-Encoding: chunked\r\n")]
    },
    "a body that is no JSON, or has unknown or wrong fields": {
        422: [
            post("{"),
            post('{"study": "sleepy", "argv": ["sh"]}'),
            post('{"study": 7}'),
            post('{"study": "sleepy", "trials": 1e400}'),
            post('{"study": null}'),
        ],
        400: [post("[" * 50_000)],
    },
    "a body with more than 600 values": {422: [post(f'{{"study": {[1] * 601}}}')]},
    "a body with two lengths: `Content-Length` and `Transfer-Encoding`": {
        400: [
            post("{}", JSON + "Transfer-Encoding: chunked\r\n"),
            request("GET /", "Transfer-Encoding: chunked\r\n", "{}"),
        ]
    },
    "a study, machine or picture that is not there": {
        404: [
            request("GET /studies/nobody"),
            request("GET /studies/nobody/pictures/progress"),
            post('{"study": "outside", "machine": "../../etc/passwd"}', line="POST /predict"),
            request("GET /nothing"),
        ]
    },
    "a path that leaves the page's files (`/page/../..`, `%2e%2e`, `%00`)": {
        404: [
            request("GET /page/../../../../etc/passwd"),
            request("GET /page/%2e%2e/%2e%2e/app.py"),
            request("GET /page/..%2f..%2fapp.py"),
            request("GET /page/%00"),
            request("GET /page/__init__.py"),
            request("GET //etc/passwd"),
        ]
    },
    "a name with `/`, `..` or a space": {
        404: [request("GET /studies/a%2fb"), request("GET /studies/../tokens.json")],
        422: [request("GET /studies/.."), request("GET /studies/a%20b"), request("GET /studies/%2e%2e/log")],
    },
    "a method that an address does not have": {
        405: [request("PUT /studies"), request("DELETE /catalogue"), request("TRACE /health"), request("POST /health")]
    },
    "bytes that are not HTTP": {400: ["\x16\x03\x01 hello\r\n\r\n", "GET /\r\n\r\n" + "x" * 100_000]},
}
ELSEWHERE = {
    "another name that leads here (DNS rebinding)": test_access.test_a_name_of_another_site_that_leads_here_is_refused,
    "a change asked for by a page of another site": test_access.test_a_page_of_another_site_changes_nothing,
    "a body of a form, or of any other kind than JSON": test_access.test_a_form_of_another_site_cannot_be_a_request,
    "a body of more than 64 KiB, announced or not": test_access.test_a_body_that_is_too_long_is_not_read,
    "more than the token is for": test_access.test_a_token_may_do_what_it_was_made_for,
    "a body that does not arrive within 20 s": test_access.test_a_body_that_does_not_come_is_not_waited_for,
    "a report, picture, table, prediction or other long answer while 32 wait, or those before take more than 20 s": (
        test_workers.test_two_are_made_at_a_time_few_wait_and_none_for_long
    ),
    "more than 128 requests at once, or 1000 followers": (
        test_access.test_too_many_at_once_are_sent_away_and_those_who_wait_count_apart
    ),
}


def rows():
    table = DOCS.read_text(encoding="utf-8").partition("| request | answer |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| (.+?) \| ([\d or]+) \|$", table, re.MULTILINE))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("refusals")) as found:
        yield found


def answer(service, text):
    with socket.create_connection(("127.0.0.1", service.port), timeout=600) as connection:
        connection.sendall(text.replace("@token", service.header).encode("latin-1"))
        said = b""
        try:
            while part := connection.recv(65536):
                said += part
        except ConnectionResetError:
            pass  # what it did not want to read
    return said.decode()


def test_the_table_has_the_rows_that_are_tested():
    assert rows().keys() == REQUESTS.keys() | ELSEWHERE.keys()


@pytest.mark.slow
@pytest.mark.parametrize("row", REQUESTS)
def test_what_is_refused_gets_what_the_table_says(service, row):
    assert {int(code) for code in rows()[row].split(" or ")} == REQUESTS[row].keys()
    for status, texts in REQUESTS[row].items():
        for text in texts:
            said = answer(service, text)
            assert said.startswith(f"HTTP/1.1 {status} "), (text[:200], said[:300])
            assert str(service.folder) not in said
            assert "Traceback" not in said
    assert "Traceback" not in service.log
