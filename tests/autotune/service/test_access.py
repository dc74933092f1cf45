"""Who is let in, and how much: over a small application, without a network."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from autotune.service.access import AccessControl
from autotune.service.callers import CallerKind
from autotune.service.limiter import Limiter
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope
from autotune.service.settings import Limits, Settings
from autotune.service.tokens import TokenBook

HERE = "http://127.0.0.1:8642"
START = "the-token-of-this-start"


async def echo(scope, receive, send):
    message = await receive()
    body = f"{scope.get('state', {}).get('by')}:{message['body'].decode()}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def settings(tmp_path):
    return Settings("sqlite:///x.db", tmp_path, start_token=START)


def app_of(settings, limits=None):
    limits = limits or Limits()
    return AccessControl(Limiter(echo, limits), replace(settings, limits=limits))


class Connection:
    """A connection as the server makes it: of a Unix socket, or of none."""

    def __init__(self, *, is_unix=False):
        self.is_unix = is_unix
        self.kinds = []

    def admit(self, kind):
        self.kinds.append(kind)


def ask(app, method="GET", path="/studies", *, base=HERE, token=START, connection=None, **options):
    async def served(scope, receive, send):
        await app({**scope, "state": {"connection": connection}}, receive, send)

    async def asked():
        shown = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
        options["headers"] = shown | options.get("headers", {})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=base) as client:
            return await client.request(method, path, **options)

    return asyncio.run(asked())


def test_whoever_shows_the_token_of_this_start_is_this_user(settings):
    connection = Connection()
    assert ask(app_of(settings), connection=connection).text == "this user:"
    assert connection.kinds == [CallerKind.OWN]


def test_whoever_shows_none_gets_nothing_but_where_to_find_one(settings):
    connection = Connection()
    answer = ask(app_of(settings), token=None, connection=connection)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "`autotune serve --url`" in answer.json()["detail"]
    assert connection.kinds == []
    assert ask(app_of(settings), token=None, path="/health").status_code == 200


def test_a_token_that_was_made_for_somebody_lets_them_in(settings):
    connection = Connection()
    assert ask(app_of(settings), token=TokenBook(settings.tokens).add("ada"), connection=connection).text == "ada:"
    assert connection.kinds == [CallerKind.TOKEN]


def test_the_unix_socket_needs_no_token_unless_a_proxy_sends_what_others_asked(settings):
    app, own = app_of(replace(settings, start_token=None)), Connection(is_unix=True)
    assert ask(app, token=None, connection=own).text == "this user:"
    for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host"):
        assert ask(app, token=None, connection=own, headers={header: "192.0.2.7"}).status_code == 401
    assert ask(app, connection=own).status_code == 401


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [(Scope.LOOK, {"look"}), (Scope.ASK, {"look", "ask"}), (Scope.OPERATE, {"look", "ask", "operate"})],
)
def test_a_token_may_do_what_it_was_made_for(settings, scope, allowed):
    token = TokenBook(settings.tokens).add("ada", scope)
    requests = {
        "look": [("GET", "/studies"), ("POST", "/predict"), ("GET", "/studies/x/events")],
        "ask": [
            ("POST", "/studies/x/ask"),
            ("POST", "/studies/x/tell"),
            ("POST", "/studies/x/renew"),
            ("POST", "/studies/x/hints"),
        ],
        "operate": [("POST", "/studies"), ("POST", "/studies/x/stop"), ("DELETE", "/studies/x"), ("PUT", "/x/ask")],
    }
    for need, sent in requests.items():
        for method, path in sent:
            answer = ask(app_of(settings), method, path, token=token)
            assert answer.status_code == (200 if need in allowed else 403), (method, path)
            assert need in allowed or f"this needs one for {need}" in answer.json()["detail"]


def test_a_token_with_a_budget_starts_studies_and_changes_no_others(settings):
    token = TokenBook(settings.tokens).add("bot", budget=Budget())
    own = [("POST", f"/studies/bot-x/{verb}") for verb in ("ask", "tell", "renew", "hints")]
    for method, path in (("POST", "/studies"), ("GET", "/studies"), ("GET", "/studies/x/hints"), *own):
        assert ask(app_of(settings), method, path, token=token).status_code == 200
    others = [("POST", f"/studies/{name}/{verb}") for name in ("x", "bot", "b") for verb in ("tell", "hints", "renew")]
    for method, path in (("DELETE", "/studies/bot-x"), ("POST", "/studies/x/extend"), ("POST", "/studies/"), *others):
        answer = ask(app_of(settings), method, path, token=token)
        assert answer.status_code == 403, path
        said = "the token of bot has a budget: it starts studies, and asks, tells and gives hints in those that begin"
        assert f"{said} with 'bot-'; it changes nothing else" in answer.json()["detail"]


def test_what_is_no_http_is_refused(settings):
    with pytest.raises(ValueError, match="speaks HTTP, not websocket"):
        asyncio.run(app_of(settings)({"type": "websocket", "path": "/", "headers": []}, None, None))


def test_a_broken_file_of_tokens_lets_nobody_in_but_this_user(settings):
    settings.tokens.write_text("{broken")
    settings.tokens.chmod(0o600)
    answer = ask(app_of(settings), token="x")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(settings.folder) not in answer.text
    assert "default-src" in answer.headers["content-security-policy"]
    assert ask(app_of(settings)).status_code == 200


@pytest.mark.parametrize("name", ["127.0.0.2", "LocalHost", "localhost:", "[::1]:80"])
def test_the_host_is_named_as_the_operator_did_or_as_this_host(tmp_path, name):
    settings = Settings("sqlite:///x.db", tmp_path, host="127.0.0.2", start_token=START)
    assert ask(app_of(settings), headers={"Host": name}).status_code == 200
    assert ask(app_of(settings), headers={"Host": f"x{name}"}).status_code == 400


@pytest.mark.parametrize(
    "shown", ["Bearer nonsense", f"Basic {START}", "Bearer", "", "Bearer \u00e9", f"Bearer {START}x"]
)
def test_a_wrong_token_is_refused_also_at_the_unix_socket(settings, shown):
    TokenBook(settings.tokens).add("ada")
    answer = ask(
        app_of(settings),
        token=None,
        connection=Connection(is_unix=True),
        headers={"Authorization": shown.encode("latin-1")},
    )
    assert answer.status_code == 401


@pytest.mark.parametrize("base", ["http://evil.example:8642", "http://evil.example", "http://127.0.0.1.evil.example"])
def test_a_name_of_another_site_that_leads_here_is_refused(settings, base):
    assert ask(app_of(settings), base=base).status_code == 400


@pytest.mark.parametrize("base", [HERE, "http://localhost:1", "http://[::1]:8642", "http://localhost"])
def test_this_hosts_own_names_are_not(settings, base):
    assert ask(app_of(settings), base=base).status_code == 200


def test_a_page_of_another_site_changes_nothing(settings):
    app = app_of(settings)
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        assert ask(app, "POST", headers={"Origin": origin}).status_code == 403
        assert ask(app, "DELETE", headers={"Origin": origin}).status_code == 403
    assert ask(app, "POST", headers={"Origin": HERE}).status_code == 200
    assert ask(app, "POST").status_code == 200  # no browser


def test_a_form_of_another_site_cannot_be_a_request(settings):
    answer = ask(app_of(settings), "POST", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert ask(app_of(settings), "POST", json={"a": 1}).text == 'this user:{"a":1}'


def test_every_answer_tells_browsers_what_it_is_not_for(settings):
    for path in ("/", "/health", "/studies", "/page/x.js"):
        headers = ask(app_of(settings), path=path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_a_body_that_is_too_long_is_not_read(settings):
    app = app_of(settings, Limits(body_bytes=100))
    kind = {"Content-Type": "application/json"}
    assert ask(app, "POST", content=b"x" * 100, headers=kind).status_code == 200
    assert ask(app, "POST", content=b"x" * 101, headers=kind).status_code == 413

    async def endless():
        while True:
            yield b"x" * 64

    assert ask(app, "POST", content=endless(), headers=kind).status_code == 413


def test_a_body_of_two_lengths_is_refused(settings):
    async def body():
        yield b"{}"

    answer = ask(
        app_of(settings), "POST", content=body(), headers={"Content-Length": "2", "Transfer-Encoding": "chunked"}
    )
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


def test_a_body_that_does_not_come_is_not_waited_for(settings):
    async def slow():
        yield b"{"
        await asyncio.sleep(3600)

    app = app_of(settings, Limits(body_s=0.05))
    assert ask(app, "POST", content=slow(), headers={"Content-Type": "application/json"}).status_code == 408


def test_too_many_at_once_are_sent_away_and_those_who_wait_count_apart(settings):
    @asynccontextmanager
    async def open_app(limits):
        here, done = asyncio.Event(), asyncio.Event()

        async def wait(scope, receive, send):
            if scope["path"] != "/quick":
                here.set()
                await done.wait()
            await echo(scope, receive, send)

        app = AccessControl(Limiter(wait, limits), settings)
        shown = {"Authorization": f"Bearer {START}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE, headers=shown) as client:
            yield client, here, done

    async def scene():
        async with open_app(Limits(at_once=1, followers=1)) as (client, here, done):
            first = asyncio.create_task(client.get("/slow"))
            await here.wait()
            assert (await client.get("/quick")).status_code == 503
            here.clear()
            follower = asyncio.create_task(client.post("/studies/x/ask"))
            await here.wait()
            assert (await client.get("/events")).status_code == 503
            for path in ("/studies/ask", "/studies/events", "/studies/x/ask"):  # these would use a thread
                assert "1 requests at once" in (await client.get(path)).json()["detail"], path
            done.set()
            assert [(await one).status_code for one in (first, follower)] == [200, 200]
            assert (await client.get("/quick")).status_code == 200

    asyncio.run(scene())
