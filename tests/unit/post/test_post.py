# SPDX-License-Identifier: GPL-2.0-or-later
"""A report reaches Patchwork, GitHub and GitLab by their APIs, once per change, and only with a token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli.main import run
from kdelta.errors import HostError, UserError
from kdelta.post import comment, http, patchwork
from kdelta.report import comment as layout
from kdelta.report.view import build
from unit.post.stand_in import TOKEN, Api, service
from unit.report.report_samples import several, timed
from unit.serve.serve_store import filled


@pytest.fixture
def api() -> Iterator[Api]:
    with service() as found:
        yield found


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path).close()
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    for name in ("PATCHWORK_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("store")
def test_a_check_is_posted_to_the_patch_of_a_message_id(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["post", "patchwork", "<1@b>", "first", "--url", api.url, "--target-url", "https://ci.example.org/1"]
    assert run(words) == 0
    printed = capsys.readouterr()
    assert api.asked == [] and "PATCHWORK_TOKEN is not set" in printed.err
    monkeypatch.setenv("PATCHWORK_TOKEN", TOKEN)
    assert run([*words, "--context", "kdelta-x86"]) == 0
    method, path, body = api.asked[-1]
    assert (method, path) == ("POST", "/api/patches/42/checks/")
    assert body == json.loads(printed.out) | {"context": "kdelta-x86"}
    assert "/api/patches/42/checks/1/" in capsys.readouterr().out


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("kind", "change", "variable", "address"),
    [("github", "o/r#7", "GITHUB_TOKEN", "GITHUB_API_URL"), ("gitlab", "g/p!7", "GITLAB_TOKEN", "CI_API_V4_URL")],
)
def test_a_second_post_edits_the_first_comment_and_no_strangers(
    kind: str, change: str, variable: str, address: str, api: Api,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv(address, api.url)
    stranger = {"login": "eve", "id": 66}
    api.comments = [
        {"id": i, "user": stranger, "author": stranger, "body": f"{layout.marker('kdelta')} mine"} for i in range(120)
    ]
    assert run(["post", kind, change, "first"]) == 0
    assert api.asked == [] and "nothing was sent" in capsys.readouterr().err
    monkeypatch.setenv(variable, TOKEN)
    assert run(["post", kind, change, "first"]) == 0
    assert run(["post", kind, change, "first"]) == 0
    assert run(["post", kind, change, "first", "--context", "other"]) == 0
    own = [one for one in api.comments if one["user"] != stranger]
    assert [one["body"].splitlines()[0] for one in own] == [layout.marker("kdelta"), layout.marker("other")]
    assert all(one["body"].endswith(" mine") for one in api.comments[:120])
    assert capsys.readouterr().out.split("\n")[:2] == ["added a comment", "edited the comment"]


def test_a_job_of_github_may_not_ask_who_it_is(api: Api) -> None:
    api.user = None
    thread = comment.github(http.Service.at(api.url, {"Authorization": TOKEN}), "o/r", 7)
    marker = layout.marker("kdelta")
    assert [comment.put(thread, marker, f"{marker} {i}") for i in range(2)] == [False, True]
    assert [one["body"] for one in api.comments] == [f"{marker} 1"]


def test_a_refusal_is_one_line_without_the_token(api: Api) -> None:
    for at, said in (
        (patchwork.service(api.url, "wrong"), "refused with 403"),
        (patchwork.service(f"{api.url}/moved", TOKEN), "refused with 302"),
        (patchwork.service("http://127.0.0.1:1", TOKEN), "check the address"),
    ):
        with pytest.raises(HostError, match=said) as caught:
            patchwork.post(at, "42", {"state": "success"})
        assert TOKEN not in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(HostError, match="knows 0 patches"):
        patchwork.post(patchwork.service(api.url, TOKEN), "2@b", {"state": "success"})
    for url, token in (("file:///etc", "x"), ("example.org", "x"), ("http://a:b@c", "x"), (api.url, "a\nb")):
        with pytest.raises(UserError):
            patchwork.service(url, token)


@pytest.mark.parametrize("words", [["github", "o/r"], ["gitlab", "g/p#7"], ["github", "o/r#7", "--context", "a b"]])
@pytest.mark.usefixtures("store")
def test_what_names_no_change_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["post", *words]) == 1
    assert "\n" not in capsys.readouterr().err.strip()


@pytest.mark.parametrize(
    ("kind", "pasted", "named"),
    [
        ("github", "https://github.com/torvalds/linux/pull/123/files", "torvalds/linux#123"),
        ("gitlab", "https://git.example.org/a/b/c/-/merge_requests/45#note_1", "a/b/c!45"),
    ],
)
def test_the_address_of_a_change_is_answered_with_its_name(
    kind: str, pasted: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["post", kind, pasted]) == 1
    assert f"did you mean {named}?" in capsys.readouterr().err


def test_a_comment_fits_and_begins_with_its_marker() -> None:
    for sample in (timed, several):
        body = layout.render(build(*sample()), "kdelta")
        assert body.startswith(layout.marker("kdelta")) and len(body) <= 60_000
    assert "### kdelta: regression" in layout.render(build(*timed()), "kdelta")
