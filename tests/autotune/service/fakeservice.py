"""A service that runs nothing: the page's files and the service's answers, with figures that are made up.

`python -m tests.autotune.service.fakeservice [PORT]` serves it to look at the page by hand.
"""

import json
import re
import sys
import threading
import time
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from autotune.batch.script_forms import script_labels
from tests.autotune.service import fakefigures as figures
from tests.autotune.service.fakestudy import FakeStudy

PAGE = Path(__file__).parents[3] / "autotune" / "service" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
ALLOWED = {
    "pause": {"running", "waiting", "open"},
    "resume": {"paused", "stopped", "failed"},
    "stop": {"running", "waiting", "pausing", "open"},
}
ADDRESSES = {"catalogue", "estimate", "events", "known", "launchers", "machines", "predict", "studies"}
RUNNING = {"running", "waiting", "pausing", "stopping", "open"}
NEXT = {"pause": "pausing", "resume": "running", "stop": "stopping"}


class ProblemError(Exception):
    """An answer that is no success."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status
        self.detail = detail


class FakeService:
    """The service at `url`; `token` is wanted of everybody if there is one. Every `pace_s` running studies go on."""

    def __init__(self, token=None, pace_s=0.2, port=0):
        self.token = token
        self.read_only = False
        self.pace_s = pace_s
        self.studies = {}
        self.asked = []
        self.orders = []
        self.port = port
        self.changed = threading.Condition()
        self.here = False
        self.silent = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def add(self, name, state="running", trials=0, **more):
        """Add a study with so many trials."""
        with self.changed:
            done = [figures.trial(number) for number in range(trials)]
            self.studies[name] = FakeStudy(name, state, trials=done, **more)
            self.changed.notify_all()
            return self.studies[name]

    def come(self):
        """Start to listen, at the same port as before."""
        self.here = True
        self.server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self.server.server_port
        self.threads = [
            threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}),
            threading.Thread(target=self._go_on),
        ]
        for thread in self.threads:
            thread.start()

    def go(self):
        """Stop to listen, and end every stream."""
        with self.changed:
            self.here = False
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        for thread in self.threads:
            thread.join()

    def __enter__(self):
        self.come()
        return self

    def __exit__(self, *error):
        self.go()

    def _go_on(self):
        with self.changed:
            while self.here:
                self.changed.wait(self.pace_s)
                for study in self.studies.values():
                    if time.monotonic() - study.began >= self.pace_s and not study.held:
                        study.tick()
                        self.changed.notify_all()

    def study(self, name):
        if name not in self.studies:
            raise ProblemError(404, f"there is no study {name!r}")
        return self.studies[name]

    def start(self, order):
        """Start a study of the catalogue."""
        self.orders.append(order)
        entry = next((one for one in figures.CATALOGUE if one["name"] == order["study"]), None)
        if entry is None:
            raise ProblemError(404, f"{order['study']!r} is not in the catalogue")
        trials = self.check(order) or entry["trials"]
        state = "open" if entry["ask_tell"] else "running"
        budget = None if trials == "auto" else trials
        more = {"budget": budget or 12, "objective": entry["objective"], "ask_tell": entry["ask_tell"]}
        return self.add(order.get("name", order["study"]), state, **more)

    def check(self, order):
        """Return how many trials an order wants."""
        trials = order.get("trials")
        if trials not in {None, "auto"} and not isinstance(trials, int):
            raise ProblemError(422, f"trials: {trials!r} is neither a number of 1 or more nor 'auto'")
        return trials

    def act(self, name, verb):
        """Pause, resume or stop a study."""
        study = self.study(name)
        if study.state not in ALLOWED[verb]:
            raise ProblemError(
                409, f"cannot {verb} a study that is {study.state}: only {', '.join(sorted(ALLOWED[verb]))}"
            )
        with self.changed:
            study.state = NEXT[verb]
            study.began = time.monotonic()
            self.changed.notify_all()
        return study

    def go_on(self, name, verb, more):
        """Make more trials of a study, or other runs, as soon as it does not run."""
        study = self.study(name)
        if study.state in RUNNING:
            raise ProblemError(409, f"study {name!r} is {study.state}: another order needs one that is stopped")
        with self.changed:
            study.budget = len(study.trials) + more.get("trials", 0)
            study.state, study.began, study.doing = "running", time.monotonic(), verb
            self.changed.notify_all()
        return study

    def label(self, name, labels):
        """Note what users say of a study."""
        for tag in labels["tags"]:
            if not re.fullmatch(r"[\w.-]+", tag):
                raise ProblemError(422, f"tags: {tag!r} was given; it must be a word")
        with self.changed:
            self.study(name).labels = labels
            self.changed.notify_all()
        return self.study(name)

    def delete(self, name):
        study = self.study(name)
        if study.state in RUNNING:
            raise ProblemError(409, f"{name!r} is {study.state}: stop it first")
        with self.changed:
            del self.studies[name]
            self.changed.notify_all()


def _chosen(trials, query):
    """Return the trials that a query wants, sorted; those without a value come last."""
    found = [one for one in trials if query.get("state") in {None, one["state"]}]
    if "where" in query:
        wanted = re.fullmatch(r"(\w+) (=|>=) (\w+)", query["where"])
        if wanted is None:
            raise ProblemError(422, f"where: {query['where']!r} is not a comparison")
        name, sign, value = wanted.groups()
        compare = {"=": lambda one: str(one) == value, ">=": lambda one: one is not None and one >= float(value)}[sign]
        found = [one for one in found if compare((one["configuration"] | one)[name])]
    key, down = query["sort"], query["down"] == "true"
    known = [one for one in found if (one["configuration"] | one)[key] is not None]
    known.sort(key=lambda one: (one["configuration"] | one)[key], reverse=down)
    return known + [one for one in found if one not in known]


def _point(study, text):
    """Return the point of a front that weights choose."""
    weights = dict(part.split("=") for part in text.split(","))
    if not any(map(float, weights.values())):
        raise ProblemError(422, "all weights are 0: give at least one metric a weight above 0")
    return max(study.front_points, key=lambda one: -one["values"]["wall_s"] * float(weights["wall_s"]))


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        """Say nothing of browsers that hang up."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


def _handler(service):  # noqa: C901  a table of addresses
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *args):
            """Say nothing."""

        def do_GET(self):
            self._answer("GET")

        def do_POST(self):
            self._answer("POST")

        def do_PUT(self):
            self._answer("PUT")

        def do_DELETE(self):
            self._answer("DELETE")

        def _answer(self, method):
            url = urlsplit(self.path)
            path = [unquote(part) for part in url.path.strip("/").split("/")]
            service.asked.append((method, self.path))
            try:
                if path[0] in ADDRESSES:
                    self._may()
                    self._api(method, path, {key: found[0] for key, found in parse_qs(url.query).items()})
                elif path == ["health"]:
                    self._json({"status": "ok", "version": "0.9.0", "read_only": service.read_only})
                else:
                    self._file(path[-1] or "index.html")
            except ProblemError as problem:
                body = {"type": "about:blank", "title": HTTPStatus(problem.status).phrase, "status": problem.status}
                self._json(body | {"detail": problem.detail}, problem.status, "application/problem+json")

        def _may(self):
            if service.token and self.headers["Authorization"] != f"Bearer {service.token}":
                raise ProblemError(401, "this service wants a token: make one with `autotune serve token`")

        def _api(self, method, path, query):  # noqa: C901, PLR0912  likewise
            match [method, *path]:
                case ["GET", "catalogue"]:
                    self._json(figures.CATALOGUE)
                case ["GET", "launchers"]:
                    self._json([{"name": "local"}, {"name": "slurm"}])
                case ["POST", "estimate"]:
                    order = self._body()
                    service.check(order)
                    named = service.studies.get(order.get("name", order["study"]))
                    self._json(figures.estimate(order, 0 if named is None else len(named.trials)))
                case ["GET", "machines"]:
                    self._json(figures.MACHINES)
                case ["GET", "known"]:
                    self._json(figures.KNOWN)
                case ["GET", "studies"]:
                    self._json([study.brief() for study in service.studies.values()])
                case ["GET", "events"]:
                    self._events("studies", lambda: [study.brief() for study in service.studies.values()])
                case ["POST", "studies"]:
                    self._json(service.start(self._body()).brief(), 201)
                case ["POST", "predict"]:
                    self._predict(self._body())
                case ["GET", "studies", name, "events"]:
                    service.study(name)
                    self._events("study", lambda: service.studies[name].detail() if name in service.studies else None)
                case ["GET", "studies", name, *rest]:
                    self._study(service.study(name), rest, query)
                case ["POST", "studies", name, verb] if verb in ALLOWED:
                    self._json(service.act(name, verb).brief(), 202)
                case ["POST", "studies", name, ("extend" | "confirm" | "ablate") as verb]:
                    more = self._body() if self.headers["Content-Length"] not in {None, "0"} else {}
                    service.orders.append({verb: more})
                    self._json(service.go_on(name, verb, more).brief(), 202)
                case ["PUT", "studies", name, "labels"]:
                    self._json(service.label(name, self._body()).brief())
                case ["DELETE", "studies", name]:
                    service.delete(name)
                    self._send(204, "text/plain", b"")
                case _:
                    raise ProblemError(404, "there is nothing at this address")

        def _study(self, study, rest, query):  # noqa: C901, PLR0912  likewise
            drawn = figures.pictures(study.trials)
            match rest:
                case []:
                    self._json(study.detail())
                case [*_] if not study.trials:
                    raise ProblemError(404, f"study {study.name!r} has not measured anything yet")
                case ["trials"]:
                    first, limit = int(query["after"]) + 1, int(query["limit"])
                    found = study.trials[first : first + limit]
                    more = first + limit < len(study.trials)
                    self._json({"trials": found, "next": found[-1]["trial"] if more else None})
                case [("table" | "table.csv") as form]:
                    self._table(form, study.trials, _chosen(study.trials, query), query)
                case ["trials", number]:
                    found = next((one for one in study.trials if str(one["trial"]) == number), None)
                    if found is None:
                        raise ProblemError(404, f"study {study.name!r} has no trial {number}")
                    self._json({"trial": found, "made": figures.runs(found)})
                case ["pictures", name] if name in drawn:
                    self._json(drawn[name])
                case ["decisions"]:
                    self._json(study.decisions)
                case ["front"]:
                    self._json(_point(study, query["weights"]))
                case ["script-forms"]:
                    self._json([{"name": form, "title": label} for form, label in script_labels()])
                case ["script"]:
                    command = "mpirun -np 24 pw.x -npool 3 -ntg 2 -inp tio2.in"
                    text = f"#!/bin/bash\n# {query['form']}\n#SBATCH --ntasks=24\n{command}\n"
                    self._send(200, "text/plain", text.encode())
                case ["log"]:
                    lines = "".join(f"trial {one['trial']}: {one['state']}\n" for one in study.trials)
                    self._send(200, "text/plain", (figures.LOG + lines).encode())
                case ["report"]:
                    self._send(200, "text/html", b"<!doctype html><html lang=en><title>report</title><h1>report</h1>")
                case _:
                    raise ProblemError(404, "the study has none")

        def _table(self, form, trials, chosen, query):
            if form == "table.csv":
                lines = [f"{one['trial']},{one['value'] or ''}\n" for one in chosen]
                self._send(200, "text/csv", "".join(["trial,value\n", *lines]).encode())
                return
            first, limit = int(query["offset"]), int(query["limit"])
            kinds = [one["state"] for one in trials]
            states = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
            page = {"trials": chosen[first : first + limit], "total": len(chosen), "states": states}
            self._json(page | {"parameters": list(figures.configuration(0))})

        def _predict(self, order):
            for rule in order.get("where", ()):
                if not re.fullmatch(r"\w+ [<>=]+ \d+", rule):
                    raise ProblemError(422, f"where: {rule!r} is no rule")
            self._json(figures.prediction(order["machine"], order["k"]))

        def _events(self, name, look):
            with service.changed:
                while service.here and service.silent:
                    service.changed.wait(0.1)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            before, number = None, 0
            with service.changed:
                while service.here:
                    found = look()
                    number += 1
                    if found is None:
                        self.wfile.write(b"event: gone\ndata: {}\n\n")
                        return
                    if found != before and not service.silent:
                        before = found
                        self.wfile.write(f"id: {number}\nevent: {name}\ndata: {json.dumps(found)}\n\n".encode())
                    service.changed.wait(0.5)

        def _body(self):
            if self.headers["Content-Type"] != "application/json":
                raise ProblemError(415, "the body is to be application/json")
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def _file(self, name):
            path = PAGE / name
            if not path.is_file():
                raise ProblemError(404, "there is no such file")
            self._send(200, TYPES[path.suffix], path.read_bytes())

        def _json(self, found, status=200, kind="application/json"):
            self._send(status, kind, json.dumps(found).encode())

        def _send(self, status, kind, body):
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

    return Handler


if __name__ == "__main__":
    with FakeService(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000, pace_s=2.0) as shown:
        shown.add("tio2 on one node", "finished", 50, budget=50)
        shown.add("qe", trials=7, budget=50)
        shown.add("ceo2", "failed", 3, message="the machine has changed: pw.x 6.7MaX was 7.2")
        threading.Event().wait()
