"""Profiles: what ships is whole, and every mistake is one line naming file, key and what is allowed."""

import itertools
import sys
from pathlib import Path

import pytest

from conformance.contract.vocabulary import SystemKind
from conformance.systems import capabilities, profiles
from conformance.systems.profile import Carrier, Profile
from conformance.systems.profile_reading import load
from conformance.systems.tables import ProfileError

REBUILD = 'name = "mine"\nkind = "rebuild"\ncapabilities = ["rebuild-session"]\n[start]\ncommand = ["mine"]\n'
PROXY = (
    'name = "mine"\nkind = "proxy"\ncapabilities = ["session-header"]\n'
    '[start]\ncommand = ["mine", "{port}"]\naddress = "given"\n'
    '[routing]\nform = "contract"\n[session]\nsession-header = {header = "X-Mine"}\n'
)


def loaded(place: Path, text: str) -> Profile:
    path = place / "profiles" / "mine.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return load(path)


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_that_ships_loads_under_its_own_name(name: str) -> None:
    assert profiles.find(name).name == name


def test_without_a_choice_the_references_are_judged() -> None:
    chosen = profiles.choose([])
    assert {kind: profile.name for kind, profile in chosen.items()} == {
        SystemKind.PROXY: "reference",
        SystemKind.REBUILD: "reference-rebuild",
        SystemKind.ROLLOUT: "reference-rollout",
    }


def test_two_systems_of_one_kind_are_refused(tmp_path: Path) -> None:
    loaded(tmp_path, REBUILD)
    with pytest.raises(ProfileError, match="kind: a second rebuild beside reference-rebuild; give one system of each"):
        profiles.choose(["reference-rebuild", str(tmp_path / "profiles" / "mine.toml")])


def test_a_system_alone_is_judged_alone(tmp_path: Path) -> None:
    loaded(tmp_path, REBUILD)
    assert list(profiles.choose([str(tmp_path / "profiles" / "mine.toml")])) == [SystemKind.REBUILD]


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(ProfileError, match=r"^refrence: no such system; expected a path or one of .*reference-rebuild"):
        profiles.find("refrence")


def test_placeholders_are_filled_and_other_braces_stay(tmp_path: Path) -> None:
    profile = loaded(tmp_path, REBUILD)
    filled = profile.fill("{python} {config} {log_dir} {json: 1}", {"config": "c", "log_dir": "{d}"})
    assert filled == f"{sys.executable} c {{d}} {{json: 1}}"


def test_what_stands_for_a_placeholder_is_not_filled_again(tmp_path: Path) -> None:
    assert loaded(tmp_path, REBUILD).fill("{config}", {"config": "{host}", "host": "h"}) == "{host}"


def test_braces_that_a_system_needs_itself_are_doubled(tmp_path: Path) -> None:
    words = '"--format={{message}}", "${home}", "{{ jinja }}", "{\\"a\\": 1}"'
    profile = loaded(tmp_path, REBUILD.replace('["mine"]', f'["mine", {words}]'))
    assert profile.start is not None
    filled = [profile.fill(word, {}) for word in profile.start.command[1:]]
    assert filled == ["--format={message}", "${home}", "{{ jinja }}", '{"a": 1}']


def test_a_command_can_name_what_lies_beside_the_profile(tmp_path: Path) -> None:
    assert loaded(tmp_path, REBUILD).fill("{here}/mine.py", {}) == f"{tmp_path}/profiles/mine.py"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "rebuild"', 'kind = "broker"', "kind: expected one of proxy, rebuild, rollout, server; seen 'broker'"),
        (
            'kind = "rebuild"',
            'kind = "server"',
            "kind: server is reserved for later; expected proxy, rebuild or rollout",
        ),
        (
            'kind = "rebuild"',
            'kind = "rollout"',
            "runner: is missing; a rollout runner says which capture proxy it can",
        ),
        ('name = "mine"\n', "", "name: is missing; expected a string"),
        ('name = "mine"', "name = 7", "name: expected a string, seen 7"),
        ('name = "mine"', 'name = "mine"\nverison = "1"', "verison: unknown key; allowed here: about, capabilities"),
        ('"rebuild-session"', '"rebuild-sesion"', "capabilities: unknown 'rebuild-sesion'; allowed: chat, "),
        (
            '["rebuild-session"]',
            '["rebuild-records"]',
            "capabilities: 'rebuild-records' rests on 'rebuild-session', which is not there; add it, or drop",
        ),
        (
            '["rebuild-session"]',
            '["durable"]',
            "capabilities: 'durable' rests on 'records-disk' or 'retrieval-http', which is not there; add it, or drop",
        ),
        (
            '["rebuild-session"]',
            '"rebuild-session"',
            "capabilities: expected a list of strings, seen 'rebuild-session'",
        ),
        ('command = ["mine"]', 'comand = ["mine"]', "start.command: is missing"),
        ('command = ["mine"]', "command = []", "start.command: is empty; expected the program and its arguments"),
        ('command = ["mine"]', 'command = ["mine"]\nready = "tcp"', "start.ready: unknown key; allowed here: command"),
        ('command = ["mine"]', 'command = ["a"]\nenv = {A = 1}', "start.env.A: expected a string, seen 1"),
        ('command = ["mine"]', 'command = ["a"]\ndeadline_seconds = true', "start.deadline_seconds: expected a number"),
        (
            '["mine"]',
            '["mine", "{prot}"]',
            r"start.command: unknown placeholder \{prot\}; allowed: \{python\}, \{here\}; for .*, \{\{prot\}\}$",
        ),
        ('["mine"]', '["mine", "{log_dir}"]', r"start.command: unknown placeholder \{log_dir\}; allowed: "),
        ('["mine"]', '["a"]\nenv = {A = "{pyton}"}', r"start.env.A: unknown placeholder \{pyton\}; allowed: "),
        ("[start]", 'version_command = ["{pithon}"]\n[start]', r"version_command: unknown placeholder \{pithon\}; "),
        ('[start]\ncommand = ["mine"]\n', "", r"start: expected either a \[start\] or an \[attach\] table"),
        ('command = ["mine"]', 'command = ["mine"', "is not TOML: "),
    ],
)
def test_a_mistake_is_one_line_naming_file_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in REBUILD
    with pytest.raises(ProfileError, match=rf"^profiles/mine\.toml: {message}") as raised:
        loaded(tmp_path, REBUILD.replace(old, new))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('address = "given"', 'address = "guessed"', "start.address: expected one of announced, given; seen 'guessed'"),
        ('"mine", "{port}"', '"mine"', r'start.command: address = "given" needs \{port\} in the command'),
        ('"{port}"', '"{port}", "{prot}"', r"start.command: unknown placeholder \{prot\}; .*\{engine\}, \{port\}; "),
        ('address = "given"', 'env = {A = "{port}"}', r"start.env.A: unknown placeholder \{port\}; allowed: "),
        (
            'address = "given"',
            'setup = [{path = "/x", json = "{enigne}"}]',
            r"start.setup\[0\].json: unknown placeholder \{enigne\}; allowed: ",
        ),
        (
            "[session]",
            '[retrieval]\ncompletions = "/{sesion}"\n[session]',
            r"retrieval.completions: unknown placeholder \{sesion\}; .* \{session\}; ",
        ),
        ('address = "given"', 'ready = "http"', "start.ready: expected tcp or a path that begins with /, seen 'http'"),
        ('address = "given"', 'setup = [{url = "/x"}]', r"start.setup\[0\].path: is missing; expected a string"),
        ('form = "contract"', 'form = "template"', 'routing.template: needed with form = "template", and only there'),
        ('form = "contract"', 'optional_keys = ["pins"]', "routing.optional_keys: unknown 'pins'; allowed: ping_secs"),
        (
            'form = "contract"',
            'form = "template"\ntemplate = "away.j2"',
            "routing.template: no such file beside the profile: away.j2",
        ),
        ('[routing]\nform = "contract"\n', "", "routing: is missing; a proxy that the suite starts needs it"),
        (
            "session-header = {",
            "session-body = {",
            "session.session-body: is not declared; add 'session-body' to capabilities",
        ),
        ('{header = "X-Mine"}', '{haeder = "X"}', "session.session-header: expected exactly one of header, body, url"),
        ('{header = "X-Mine"}', '{key = "marker"}', "session.session-header.key: expected a text with {session}"),
        (
            '["session-header"]',
            '["session-header", "retrieval-http"]',
            "retrieval: says nothing of what the capability",
        ),
    ],
)
def test_a_mistake_in_a_proxy_is_one_line_too(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PROXY
    with pytest.raises(ProfileError, match=rf"^profiles/mine\.toml: {message}") as raised:
        loaded(tmp_path, PROXY.replace(old, new))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("url", ["https://127.0.0.1:80", "http://127.0.0.1", "http://127.0.0.1:80/v1", "127.0.0.1:80"])
def test_an_address_to_attach_to_is_scheme_host_and_port_alone(tmp_path: Path, url: str) -> None:
    text = f'name = "mine"\nkind = "proxy"\ncapabilities = []\n[attach]\nurl = "{url}"\nengine = "http://127.0.0.1:1"\n'
    with pytest.raises(ProfileError, match=r"attach\.url: expected http://HOST:PORT and no more"):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["session-header"]', "[]", "is not declared; add 'session-header' to capabilities, or drop this entry"),
        ('session-header = {header = "X-Mine"}', "", "is missing; capabilities has 'session-header': add the entry"),
    ],
    ids=["capability", "entry"],
)
def test_of_a_session_capability_and_its_entry_the_missing_one_is_named(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    with pytest.raises(ProfileError, match=r"session\.session-header: ") as refused:
        loaded(tmp_path, PROXY.replace(old, new))
    assert told in str(refused.value)


def test_a_profile_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"/away\.toml: cannot be read: No such file or directory$"):
        load(tmp_path / "away.toml")


def test_a_profile_can_carry_a_system_of_another_make(tmp_path: Path) -> None:
    """With its own interpreter, session in the URL, template, set-up calls, and its own record form."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "routes.j2").write_text("engine={{ engine }}\n")
    profile = loaded(
        tmp_path,
        """
        name = "rival"
        kind = "proxy"
        version = "0.1.0"
        python = "/somewhere/bin/python"
        capabilities = ["chat", "session-url", "retrieval-http"]
        [install]
        packages = ["rival==0.1.0"]
        [start]
        command = ["{python}", "-m", "rival", "--worker", "{engine}/v1", "--port", "{port}"]
        address = "given"
        ready = "/health"
        setup = [{path = "/api/models", json = '[{"name": "policy-model", "url": "{engine}"}]'}]
        [routing]
        form = "template"
        template = "routes.j2"
        [session]
        session-url = {url = "/sessions/{session}/v1"}
        [retrieval]
        sessions = "/sessions"
        completions = "/sessions/{session}/traces"
        session_rows = ""
        record_rows = "traces"
        [retrieval.fields]
        generation_token_ids = "completion.token_ids"
        """,
    )
    assert profile.fill("{python}", {}) == "/somewhere/bin/python"
    assert profile.start is not None
    assert profile.start.setup[0].method == "POST"
    assert profile.carriers["session-url"] == Carrier("url", "/sessions/{session}/v1")


def test_what_a_capability_rests_on_is_one_itself() -> None:
    assert {*capabilities.RESTS_ON, *itertools.chain(*capabilities.RESTS_ON.values())} <= set(capabilities.known())
