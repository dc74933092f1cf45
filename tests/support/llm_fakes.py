"""Fake vLLM and SGLang, servers and loads: programs that refuse what the real ones do not know (llm_flags.txt).

The latencies that a load prints grow with its rate, so that a study finds the highest rate that keeps its limits.
"""

import http.server
import re
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

FLAGS = Path(__file__).with_name("llm_flags.txt")
MODULES = ("sglang.launch_server", "sglang.benchmark.serving")
CHOICES = {
    "--performance-mode": {"balanced", "interactivity", "throughput"},
    "--kv-cache-dtype": {"auto", "fp8", "fp8_e4m3", "fp8_e5m2"},
    "--attention-backend": {"fa3", "fa4", "flashinfer", "triton"},
    "--dataset-name": {"random", "random-ids", "sharegpt"},
    "--backend": {"openai", "vllm", "sglang"},
}
FIGURES = """\
Successful requests:                     {prompts}
P99 TTFT (ms):                           {ttft:.2f}
P99 TPOT (ms):                           {tpot:.2f}
Request goodput (req/s):                 {rate:.2f}
Output token throughput (tok/s):         {tokens:.2f}
"""


def known_flags(program: str) -> set[str]:
    """Return the flags of a program by its section of the list."""
    sections = re.split(r"^\[(.*)\]$", FLAGS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return set(dict(zip(sections[::2], sections[1::2], strict=True))[program].split())


def program_of(words: Sequence[str]) -> str | None:
    """Return the program that a command line starts; None if it is another one."""
    line = " ".join(words).removeprefix("python3 -m ")
    return next((name for name in ("vllm serve", "vllm bench serve", *MODULES) if line.startswith(f"{name} ")), None)


def refusals(words: Sequence[str]) -> list[str]:
    """Return what the real program would refuse of a command line."""
    program = program_of(words)
    if program is None:
        return [f"no such program: {shlex.join(words)}"]
    known = known_flags(program)
    unknown = [word for word in words if re.match(r"--?[a-z]", word) and word != "-m" and word not in known]
    values = [f"{flag} {value}" for flag, value in pairwise(words) if flag in CHOICES and value not in CHOICES[flag]]
    return unknown + values


def install(folder: Path) -> None:
    """Write programs `vllm` and `python3` that are the fakes; `python3` is the real one for everything else."""
    fake = f"exec {shlex.quote(sys.executable)} {shlex.quote(__file__)}"
    modules = "|".join(MODULES)
    texts = {
        "vllm": f'{fake} vllm "$@"',
        "python3": f'case "$2" in {modules}) {fake} python3 "$@" ;; esac\nexec {shlex.quote(sys.executable)} "$@"',
    }
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


class _Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


def main(words: Sequence[str]) -> None:
    """Serve until a signal comes, or print a load's figures."""
    if refused := refusals(words):
        sys.exit(f"error: unrecognized arguments: {' '.join(refused)}")
    given = dict(pairwise(words))
    if "--port" in given:
        http.server.HTTPServer(("127.0.0.1", int(given["--port"])), _Healthy).serve_forever()
    rate = float(given["--request-rate"])
    sys.stdout.write(
        FIGURES.format(prompts=given["--num-prompts"], ttft=12.0 * rate, tpot=rate, rate=rate, tokens=128.0 * rate)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
