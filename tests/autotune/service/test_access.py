"""Who is let in, and how much: over a small application, without a network."""

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from autotune.service.access import AccessControl
from autotune.service.limiter import Limiter
from autotune.service.peers.peer import PeerFinder
from autotune.service.scopes import Scope
from autotune.service.settings import Limits, Settings
from autotune.service.tokens import TokenBook

HERE = "http://127.0.0.1:8642"


async def echo(scope, receive, send):
    message = await receive()
    body = f"{scope.get('state', {}).get('by')}:{message['body'].decode()}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def settings(tmp_path):
    return Settings("sqlite:///x.db", tmp_path)


def app_of(settings, limits=None):
    limits = limits or Limits()
    return AccessControl(Limiter(echo, limits), replace(settings, limits=limits), PeerFinder())


def ask(app, method="GET", path="/studies", base=HERE, peer="127.0.0.1", **options):
    async def asked():
        transport = httpx.ASGITransport(app, client=(peer, 40000))
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, **options)

    return asyncio.run(asked())


def come_from(monkeypatch, user):
    async def complete(finder, peer):
        peer.user = user if peer.on_this_host else None

    monkeypatch.setattr(PeerFinder, "complete", complete)


@pytest.fixture
def own(monkeypatch):
    come_from(monkeypatch, os.geteuid())


@pytest.fixture
def foreign(monkeypatch):
    come_from(monkeypatch, os.geteuid() + 1)


def test_this_user_needs_no_token_on_this_host(settings, own):
    assert ask(app_of(settings)).text == "this user:"


def test_another_user_of_this_host_does(settings, foreign):
    answer = ask(app_of(settings))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    token = TokenBook(settings.tokens).add("ada")
    assert ask(app_of(settings), headers={"Authorization": f"Bearer {token}"}).text == "ada:"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [(Scope.LOOK, {"look"}), (Scope.ASK, {"look", "ask"}), (Scope.OPERATE, {"look", "ask", "operate"})],
)
def test_a_token_may_do_what_it_was_made_for(settings, foreign, scope, allowed):
    shown = {"Authorization": f"Bearer {TokenBook(settings.tokens).add('ada', scope)}"}
    requests = {
        "look": [("GET", "/studies"), ("POST", "/predict"), ("GET", "/studies/x/events")],
        "ask": [("POST", "/studies/x/ask"), ("POST", "/studies/x/tell"), ("POST", "/studies/x/renew")],
        "operate": [("POST", "/studies"), ("POST", "/studies/x/stop"), ("DELETE", "/studies/x"), ("PUT", "/x/ask")],
    }
    for need, sent in requests.items():
        for method, path in sent:
            answer = ask(app_of(settings), method, path, headers=shown)
            assert answer.status_code == (200 if need in allowed else 403), (method, path)
            assert need in allowed or f"this needs one for {need}" in answer.json()["detail"]


def test_where_always_a_token_is_needed_this_user_needs_one(settings, own):
    strict = replace(settings, always_token=True)
    assert ask(app_of(strict)).status_code == 401
    assert ask(app_of(strict), path="/health").status_code == 200
    shown = {"Authorization": f"Bearer {TokenBook(settings.tokens).add('ada')}"}
    assert ask(app_of(strict), headers=shown).text == "ada:"


def test_what_is_no_http_is_refused(settings, own):
    with pytest.raises(ValueError, match="speaks HTTP, not websocket"):
        asyncio.run(app_of(settings)({"type": "websocket", "path": "/", "headers": []}, None, None))


def test_elsewhere_everybody_needs_one_this_user_too(tmp_path, own):
    settings = Settings("sqlite:///x.db", tmp_path, host="192.0.2.1")
    assert ask(app_of(settings), base="http://192.0.2.1:8642").status_code == 401
    assert ask(app_of(settings), base="http://192.0.2.1:8642", path="/health").status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host"])
def test_behind_a_proxy_of_this_user_nobody_is_this_user(settings, own, header):
    assert ask(app_of(settings), headers={header: "127.0.0.1:40000"}).status_code == 401
    token = TokenBook(settings.tokens).add("ada")
    shown = {"Authorization": f"Bearer {token}", header: "192.0.2.7"}
    assert ask(app_of(settings), headers=shown).text == "ada:"


@pytest.mark.parametrize("content", ["{broken", "[]", '{"ada": 1}', '{"ada": {"sha256": 5, "made": "x"}}'])
def test_a_broken_file_of_tokens_lets_nobody_in_but_this_user(settings, own, content):
    settings.tokens.write_text(content)
    answer = ask(app_of(settings), headers={"Authorization": "Bearer x"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(settings.folder) not in answer.text
    assert "default-src" in answer.headers["content-security-policy"]
    assert ask(app_of(settings)).status_code == 200


@pytest.mark.parametrize("name", ["127.0.0.2", "LocalHost", "localhost:", "[::1]:80"])
def test_the_host_is_named_as_the_operator_did_or_as_this_host(tmp_path, own, name):
    settings = Settings("sqlite:///x.db", tmp_path, host="127.0.0.2")
    assert ask(app_of(settings), headers={"Host": name}).status_code == 200
    assert ask(app_of(settings), headers={"Host": f"x{name}"}).status_code == 400


@pytest.mark.parametrize("shown", ["Bearer nonsense", "Basic abc", "Bearer", "", "Bearer \u00e9"])
def test_a_wrong_token_is_refused_even_from_this_user(settings, own, shown):
    TokenBook(settings.tokens).add("ada")
    assert ask(app_of(settings), headers={"Authorization": shown.encode("latin-1")}).status_code == 401


@pytest.mark.parametrize("base", ["http://evil.example:8642", "http://evil.example", "http://127.0.0.1.evil.example"])
def test_a_name_of_another_site_that_leads_here_is_refused(settings, own, base):
    assert ask(app_of(settings), base=base).status_code == 400


@pytest.mark.parametrize("base", [HERE, "http://localhost:1", "http://[::1]:8642", "http://localhost"])
def test_this_hosts_own_names_are_not(settings, own, base):
    assert ask(app_of(settings), base=base).status_code == 200


def test_a_page_of_another_site_changes_nothing(settings, own):
    app = app_of(settings)
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        assert ask(app, "POST", headers={"Origin": origin}).status_code == 403
        assert ask(app, "DELETE", headers={"Origin": origin}).status_code == 403
    assert ask(app, "POST", headers={"Origin": HERE}).status_code == 200
    assert ask(app, "POST").status_code == 200  # no browser


def test_a_form_of_another_site_cannot_be_a_request(settings, own):
    answer = ask(app_of(settings), "POST", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert ask(app_of(settings), "POST", json={"a": 1}).text == 'this user:{"a":1}'


def test_every_answer_tells_browsers_what_it_is_not_for(settings, foreign):
    for path in ("/", "/health", "/studies", "/page/x.js"):
        headers = ask(app_of(settings), path=path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_a_body_that_is_too_long_is_not_read(settings, own):
    app = app_of(settings, Limits(body_bytes=100))
    kind = {"Content-Type": "application/json"}
    assert ask(app, "POST", content=b"x" * 100, headers=kind).status_code == 200
    assert ask(app, "POST", content=b"x" * 101, headers=kind).status_code == 413

    async def endless():
        while True:
            yield b"x" * 64

    assert ask(app, "POST", content=endless(), headers=kind).status_code == 413


def test_a_body_that_does_not_come_is_not_waited_for(settings, own):
    async def slow():
        yield b"{"
        await asyncio.sleep(3600)

    app = app_of(settings, Limits(body_s=0.05))
    assert ask(app, "POST", content=slow(), headers={"Content-Type": "application/json"}).status_code == 408


def test_too_many_at_once_are_sent_away_and_those_who_wait_count_apart(settings, own):
    @asynccontextmanager
    async def open_app(limits):
        here, done = asyncio.Event(), asyncio.Event()

        async def wait(scope, receive, send):
            if scope["path"] != "/quick":
                here.set()
                await done.wait()
            await echo(scope, receive, send)

        app = AccessControl(Limiter(wait, limits), settings, PeerFinder())
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
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
            done.set()
            assert [(await one).status_code for one in (first, follower)] == [200, 200]
            assert (await client.get("/quick")).status_code == 200

    asyncio.run(scene())
