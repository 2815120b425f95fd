# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re

import pytest
from lxml import html
from starlette.testclient import TestClient

from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store

TOKEN = "s3cret-" * 4


def open_client(store: Store, access: Access) -> TestClient:
    app = create_app(store, access, pytest.fail)
    return TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost", "LOCALHOST:1", "[::1]:8642", "localhost."])
def test_the_names_of_this_machine_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost:8642@evil.example",
        "",
        "[::1",
        "10.0.0.1",
        "a b",
        "x" * 10_000,
    ],
)
def test_another_host_name_is_refused_so_that_rebinding_fails(client: TestClient, host: str) -> None:
    answer = client.get("/experiments", headers={"host": host})
    assert answer.status_code == 421 and "6.12" not in answer.text


def test_two_host_headers_are_refused(client: TestClient) -> None:
    answer = client.get("/", headers=[("host", "localhost"), ("host", "localhost")])
    assert answer.status_code == 421


def test_any_address_is_answered_where_all_are_listened_on_but_no_other_name(store: Store) -> None:
    client = open_client(store, Access(hosts=frozenset({"lab"}), any_address=True))
    assert client.get("/", headers={"host": "192.0.2.7:8642"}).status_code == 200
    assert client.get("/", headers={"host": "[2001:db8::1]"}).status_code == 200
    assert client.get("/", headers={"host": "lab:80"}).status_code == 200
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("address", ["/", "/nothing", "/experiments/first"])
def test_nothing_but_reading_is_allowed(client: TestClient, method: str, address: str) -> None:
    answer = client.request(method, address, headers={"origin": "http://evil.example"})
    assert answer.status_code == 405 and answer.headers["allow"] == "GET, HEAD"
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "address", ["/", "/nothing", "/experiments/first/report", "/experiments/first.json", "/style.css"]
)
def test_every_answer_forbids_scripts_frames_and_other_origins(client: TestClient, address: str) -> None:
    headers = client.get(address, headers={"origin": "http://evil.example"}).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "script-src" not in policy and "frame-ancestors 'none'" in policy
    assert ("'unsafe-inline'" in policy) == address.endswith("/report")
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_browser_keeps_the_style_of_this_version_alone(client: TestClient) -> None:
    (link,) = html.document_fromstring(client.get("/").text).xpath("//link[@rel='stylesheet']/@href")
    assert re.fullmatch(r"/style\.css\?[0-9a-f]{12}", link)
    found = client.get(link)
    assert found.headers["content-type"].startswith("text/css") and "immutable" in found.headers["cache-control"]
    for other in ("/style.css", "/style.css?000000000000"):
        assert client.get(other).headers["cache-control"] == "no-store"
        assert client.get(other).content == found.content


def test_head_is_answered_without_a_body(client: TestClient) -> None:
    answer = client.head("/experiments")
    assert answer.status_code == 200 and not answer.content


def test_without_the_token_nothing_is_shown(store: Store) -> None:
    client = open_client(store, Access(token=TOKEN))
    for address in ("/", "/experiments/first", "/experiments/first.json", "/nothing", f"/?token={TOKEN}x", "/?token=ä"):
        answer = client.get(address)
        assert answer.status_code == 403 and "6.12" not in answer.text and TOKEN not in answer.text
        assert "set-cookie" not in answer.headers
    assert client.get("/", headers={"cookie": "kdelta_token=wrong"}).status_code == 403


def test_the_token_is_given_once_and_kept_as_a_cookie(store: Store) -> None:
    client = open_client(store, Access(token=TOKEN, cookie="kdelta_token_1"))
    answer = client.get(f"/history?case=pidfd_open&token={TOKEN}")
    assert answer.status_code == 303 and answer.headers["location"] == "/history?case=pidfd_open"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Domain" not in cookie
    assert client.get("/experiments/first").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example/x"])
def test_the_redirection_never_leaves_this_server(store: Store, path: str) -> None:
    client = open_client(store, Access(token=TOKEN))
    answer = client.get(f"http://127.0.0.1:8642{path}?token={TOKEN}")
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith("/") and not location.startswith(("//", "/\\"))
