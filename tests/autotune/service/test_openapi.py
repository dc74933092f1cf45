"""The description of the service, and what schemathesis makes of it: no 5xx, no answer that is not as described."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.autotune.service.serving import OUTSIDE, Service, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

# Streams do not end.
ENDLESS = "/events$"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    with serving(folder) as found:
        # The examples of the description are about a study of this name.
        (folder / "catalogue" / "qe.toml").write_text(OUTSIDE)
        with found.client() as client:
            client.start("qe", trials=100)
            leased = wait_for(lambda: client.ask("qe", wait_s=5))
            client.tell("qe", leased.lease, value=2.0)
        yield found


def described(service: Service):
    name, _, value = service.header.partition(": ")
    request = urllib.request.Request(f"{service.url}/openapi.json", headers={name: value})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_everything_has_a_summary_and_what_is_sent_has_an_example(service):
    found = described(service)
    schemas = found["components"]["schemas"]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert operation["description"].startswith(operation["summary"]), (method, path)
            if path != "/health":
                assert {"401", "503"} <= operation["responses"].keys(), (method, path)
            body = operation.get("requestBody")
            if body is not None:
                name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert schemas[name].get("examples"), name


def test_operation_ids_are_names_that_a_client_may_have_and_the_docs_list_each_request(service):
    found = described(service)
    operations = [operation for methods in found["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert {"list_studies", "start_study", "give_hint", "ask", "tell"} <= set(names)
    with urllib.request.urlopen(f"{service.url}/docs") as answer:
        text = answer.read().decode()
    assert text.count("<section") == len(operations)


@pytest.mark.full
def test_schemathesis_finds_nothing(service):
    program = Path(sys.executable).with_name("schemathesis")
    # A rule may refuse what the description allows (two results in one, a name that is taken), and two studies be one.
    other = "--exclude-checks=positive_data_acceptance,ensure_resource_availability"
    options = [
        other,
        f"--exclude-path-regex={ENDLESS}",
        "--max-examples=4",
        "--seed=20261122",
        "--request-timeout=60",
        "--no-color",
        f"--header={service.header}",
    ]
    ended = subprocess.run(
        [program, "run", f"{service.url}/openapi.json", f"--url={service.url}", *options],
        cwd=service.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:]
    assert "Traceback" not in service.log
