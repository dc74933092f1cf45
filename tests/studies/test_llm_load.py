"""The load of the study `llm`: what it sends, and what it reports of what comes back."""

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.study_programs import loaded

PROGRAM = Path("studies/programs/llm_load.py").absolute()
QUICK = ("--rate", "40", "--seconds", "1", "--answer", "2:6")


class FakeServer(http.server.ThreadingHTTPServer):
    """An OpenAI-compatible server that waits before the first token and before each further one, and counts."""

    daemon_threads, request_queue_size = True, 100

    def __init__(self, first_s=0.03, next_s=0.01, missing=0, status=200, chunked=True):
        super().__init__(("127.0.0.1", 0), Answer)
        self.first_s, self.next_s, self.missing, self.status, self.chunked = first_s, next_s, missing, status, chunked
        self.bodies, self.port = [], self.server_port

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, address):
        """Ignore a client that is gone: a load drops its requests when it ends early."""


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.bodies.append(body)
        coding = "Transfer-Encoding: chunked\r\n" if server.chunked else ""
        self.wfile.write(f"HTTP/1.1 {server.status} Said\r\n{coding}\r\n".encode())
        count = body["max_tokens"] - server.missing
        events = [{"choices": [{"text": "w"}]} for _ in range(count)]
        for number, event in enumerate([*events, {"choices": [], "usage": {"completion_tokens": count}}]):
            time.sleep(server.next_s if number else server.first_s)
            text = f"data: {json.dumps(event)}\n\n".encode()
            # Cut in two: an event need not come in one piece.
            for part in (text[:7], text[7:]) if server.chunked else (text,):
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n" if server.chunked else part)
        self.wfile.write(b"c\r\ndata: [DONE]\r\n0\r\n\r\n" if server.chunked else b"data: [DONE]\n")

    def log_message(self, *words):
        pass


def run(server, *options, seed="5"):
    words = [sys.executable, str(PROGRAM), "--url", f"http://127.0.0.1:{server.port}", *options]
    environment = {**os.environ, "AUTOTUNE_SEED": seed}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [True, False])
def test_figures_are_those_of_the_server(chunked):
    with FakeServer(chunked=chunked) as server:
        ended = run(server, *QUICK, "--ttft-ms", "1000000", "--tpot-ms", "1000000")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["requests"] == found["answered"] == len(server.bodies) == 40
    assert found["output_tokens"] == sum(body["max_tokens"] for body in server.bodies)
    assert found["prompt_tokens"] == sum(len(body["prompt"]) for body in server.bodies)
    assert found["requests_per_s"] == found["goodput_per_s"] == pytest.approx(40 / found["seconds"], rel=1e-3)
    assert found["requests_per_s"] <= 40
    # A busy machine makes them longer, but none is longer than the load.
    assert 30 <= found["ttft_p50_ms"] < found["whole_p50_ms"] <= found["whole_p99_ms"] <= 1000 * found["seconds"]
    assert 10 <= found["tpot_p50_ms"] < found["whole_p50_ms"]


@pytest.mark.slow
def test_requests_in_line_are_late_from_when_they_were_due():
    with FakeServer(first_s=0.5) as server:
        ended = run(server, *QUICK, "--ttft-ms", "100")
    found = json.loads(ended.stdout)
    assert found["ttft_p99_ms"] >= 500
    assert found["goodput_per_s"] == 0


@pytest.mark.slow
def test_a_load_that_cannot_keep_its_limit_ends_early():
    with FakeServer(first_s=0.5) as server:
        ended = run(server, "--rate", "40", "--seconds", "8", "--ttft-ms", "100", "--give-up")
    found = json.loads(ended.stdout)
    assert found["requests"] == 320
    assert 100 < found["ttft_p99_ms"] <= 1000 * found["seconds"]
    assert len(server.bodies) < 100


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "said"), [({"status": 400}, "400 Said"), ({"missing": 1}, "tokens, ")])
def test_a_wrong_answer_fails_the_load(wrong, said):
    with FakeServer(**wrong) as server:
        ended = run(server, *QUICK)
    assert ended.returncode == 1
    assert "requests failed: " in ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_that_is_not_there_fails_the_load():
    class Gone:
        port = 1

    ended = run(Gone, *QUICK)
    assert ended.returncode == 1
    assert "Connect" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_seed_draws_times_lengths_and_prompts():
    load = loaded("llm_load")

    class Given:
        rate, seconds, prompt, answer, tokens = 20.0, 3.0, (32, 128), (8, 32), (259, 8192)

    first, again, other = (load.draw_requests(Given, seed) for seed in (1, 1, 2))
    assert len(first) == 60
    assert first == again != other
    assert [one.due_s for one in first] == sorted(one.due_s for one in first)
    assert all(32 <= len(one.prompt) <= 128 and 8 <= one.asked <= 32 for one in first)
    assert all(259 <= token < 8192 for one in first for token in one.prompt)
