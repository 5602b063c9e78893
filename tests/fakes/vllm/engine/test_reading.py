"""A playbook is read strictly: a wrong one is refused in one line that names file, key and what is allowed."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fakes.vllm.playbook import PlaybookError, playbook_schema
from fakes.vllm.reading import load_playbook, read_playbook
from tests.fakes.vllm.engine.making import playbook_from

FULL = """
about: Everything a playbook can say.
sampling: drifting
tools: [execute_bash]
scopes:
  main:
    turns:
      - text: "{tag} I look first."
        reasoning: Hm.
        calls: [{name: execute_bash, arguments: {command: "ls  # {tag}"}}, {name: raw, arguments: '{"a":1}'}]
        finish: stop
        attempts: fresh
        gate: name
        fault: {name: cut_stream, on_attempts: [0], at_token: 3, status: 500, headers: {a: b}, raw: ""}
        chunking: [1, 2]
      - {text: "", returns: false, sampling: faithful, attempts: [{text: Sorry.}, {calls: [{name: a}], returns: false}]}
      - {ids: ["{tag}", 1, 2]}
      - {calls: [{name: Task, arguments: {prompt: "{tag:child} go", description: "{tag}"}}]}
      - {text: cut he, finish: length}
      - {text: shown, message: {content: "{tag} another", tool_calls: []}}
  child:
    turns: [{text: Done.}]
side_calls:
  - {name: title, when: {tools: none, last_user_contains: "title"}, text: A title}
"""


def _turn(turn: str) -> str:
    return f"about: x\nscopes: {{main: {{turns: [{turn}]}}}}"


def test_a_full_playbook_is_read_and_fits_its_own_schema() -> None:
    playbook = playbook_from(FULL)
    assert [scope.turns[0].attempts for scope in playbook.scopes.values()] == ["fresh", "same"]
    validator = jsonschema.Draft202012Validator(playbook_schema())
    validator.check_schema(playbook_schema())
    validator.validate(yaml.safe_load(FULL))
    assert list(validator.iter_errors({"about": "x", "scopes": {"main": {"turns": [{"textt": "a"}]}}}))


def test_text_without_a_tag_gets_it_in_front() -> None:
    playbook = playbook_from(_turn("{text: Hello., attempts: [{text: Again.}]}"))
    (turn,) = playbook.scopes["main"].turns
    assert turn.text == "{tag} Hello."
    assert [content.text for content in turn.contents()] == ["{tag} Hello.", "{tag} Again."]


@pytest.mark.parametrize("text", ["Hi {tag}.", "{tag}"])
def test_text_with_a_tag_stays_as_it_is(text: str) -> None:
    (turn,) = playbook_from(_turn(f'{{text: "{text}"}}')).scopes["main"].turns
    assert turn.text == text


def test_a_tag_in_a_call_is_enough() -> None:
    turn = '{sampling: drifting, text: I look., calls: [{name: a, arguments: {deep: [{x: "# {tag}"}]}}]}'
    assert playbook_from(_turn(turn)).scopes["main"].turns[0].text == "I look."


WRONG = {
    "unknown key": ("{textt: a}", r"scopes\.main\.turns\[0\]\.textt: unknown key; allowed: text, reasoning, calls, "),
    "unknown key of an attempt": (
        "{text: a, attempts: [{text: b}, {gate: c}]}",
        r"turns\[0\]\.attempts\[1\]\.gate: unknown key; allowed: text, ",
    ),
    "wrong attempts": ("{text: a, attempts: 5}", r"turns\[0\]\.attempts: expected 'same' or 'fresh' or .* seen 5"),
    "unknown fault": (
        "{text: a, fault: {name: cutstream}}",
        r"turns\[0\]\.fault\.name: no fault is named 'cutstream'; did you mean 'cut_stream'\? allowed: http_error, ",
    ),
    "wrong type": ("{text: 5}", r"turns\[0\]\.text: expected a string, seen 5"),
    "no tag": ('{text: ""}', r"turns\[0\]: has no \{tag\} that could come back: put it in the text, "),
    "no tag in the call": ("{calls: [{name: a, arguments: {x: 1}}]}", r"turns\[0\]: has no \{tag\}"),
    "no tag in the message": ("{text: a, message: {content: b}}", r"turns\[0\]: has no \{tag\}"),
    "no content": ("{gate: a}", r"turns\[0\]: says nothing: give text, calls or ids"),
    "returns false alone": ("{text: a, returns: false}", r"turns\[0\]\.attempts: .* needs a list of attempts"),
    "empty attempts": ("{text: a, attempts: []}", r"turns\[0\]\.attempts: the list is empty"),
    "tag in reasoning": ('{text: a, reasoning: "{tag}"}', r"turns\[0\]\.reasoning: a tag does not survive"),
    "unknown scope": ('{text: "{tag} {tag:kid}"}', r"turns\[0\]: \{tag:kid\} names no scope; allowed: main"),
    "ids and text": ("{text: a, ids: [1]}", r"turns\[0\]: ids replace text, reasoning and calls"),
    "log probs alone": ("{text: a, log_probs: [-1.0]}", r"turns\[0\]: log_probs need ids beside them"),
    "too few log probs": ("{ids: [1, 2], log_probs: [-1.0]}", r"turns\[0\]: log_probs need as many ids"),
    "chunks of nothing": ("{text: a, chunking: [0]}", r"turns\[0\]\.chunking\[0\]: .*greater than or equal to 1"),
    "quoted tool name": ("{calls: [{name: 'a\"b'}]}", r"turns\[0\]\.calls\[0\]\.name: "),
}


@pytest.mark.parametrize(("turn", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_turn_is_refused_in_one_line(turn: str, message: str) -> None:
    with pytest.raises(PlaybookError, match=r"^test\.yaml: ") as refused:
        playbook_from(_turn(turn))
    refused.match(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "test: expected a mapping with about and scopes, seen list"),
        ({"scopes": {}}, "test: about: is missing"),
        ({"about": "x", "scopes": {}}, "test: scopes: .*at least 1"),
        (
            {"about": "x", "scopes": {"m": {"turns": [{"text": "a"}]}}, "sides": []},
            "test: sides: unknown key; allowed: ",
        ),
    ],
)
def test_a_wrong_document_is_refused_in_one_line(document: Any, message: str) -> None:
    with pytest.raises(PlaybookError, match=message):
        read_playbook(document, "test")


def test_a_side_call_needs_a_condition_and_a_name_of_its_own() -> None:
    base = _turn("{text: a}")
    with pytest.raises(PlaybookError, match=r"side_calls\[0\]\.when: needs at least one condition of tools, roles, "):
        playbook_from(f"{base}\nside_calls: [{{name: s, when: {{}}, text: a}}]")
    one = "{name: s, when: {tools: none}, text: a}"
    with pytest.raises(PlaybookError, match=r"side_calls\[1\]\.name: 's' stands for another side call already"):
        playbook_from(f"{base}\nside_calls: [{one}, {one}]")


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("about: x\nscopes: {main: {turns: [{text: a, text: b}]}}")
    with pytest.raises(PlaybookError, match=r"twice\.yaml: no YAML: key 'text' is given twice"):
        load_playbook(path)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"a: [", "no YAML"), (b"\xff\xfe\xfa", "no YAML")]
)
def test_a_file_that_cannot_be_read_is_one_line(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlaybookError, match=rf"bad\.yaml: {message}") as refused:
        load_playbook(path)
    assert "\n" not in str(refused.value)


UNFAITHFUL = {
    "length": ("{text: a, finish: length}", "it ends by length"),
    "second end token": ("{text: a, finish: endoftext}", "it ends by endoftext"),
    "explicit ids": ("{ids: ['{tag}']}", "it has explicit ids"),
    "message": ("{text: words, message: {content: '{tag}'}}", "its message is not what a parser gives"),
    "text beside a call": ("{text: a, calls: [{name: b}]}", "it has text beside a call"),
    "compact arguments": (
        '{calls: [{name: a, arguments: \'{"x":"{tag}"}\'}]}',
        "the arguments of a are not in the template's own form",
    ),
    "broken arguments": ("{calls: [{name: a, arguments: '{{tag}'}]}", "the arguments of a are no JSON"),
    "end token": ("{text: a <|im_end|> b}", r"its text holds <\|im_end\|>"),
    "think tag": ("{text: a, reasoning: b </think> c}", "its reasoning holds </think>"),
    "tag in arguments": (
        "{calls: [{name: a, arguments: {x: '{tag} </tool_call>'}}]}",
        "the call of a holds </tool_call>",
    ),
    "newlines around reasoning": ('{text: a, reasoning: "b\\n"}', "drops newlines at either end of the reasoning"),
    "a newline first": ('{text: "\\n{tag}"}', "drops newlines that open the text"),
    "a listed attempt": ("{text: a, attempts: [{text: b, finish: length}]}", "it ends by length"),
}


@pytest.mark.parametrize(("turn", "rule"), UNFAITHFUL.values(), ids=UNFAITHFUL)
def test_a_turn_that_cannot_be_faithful_is_refused_with_the_rule(turn: str, rule: str) -> None:
    with pytest.raises(PlaybookError, match=rf"turns\[0\].*: cannot be sampled faithfully: .*{rule}"):
        playbook_from(_turn(turn))
    drifting = turn.replace("{", "{sampling: drifting, ", 1)
    if "im_end" not in turn:
        playbook_from(_turn(drifting.replace("[{text: b,", "[{text: b, sampling: drifting,")))


@pytest.mark.parametrize(
    ("turn", "rule"),
    [
        ('{text: "", returns: false, attempts: [{text: a}]}', "it has no token to split"),
        ('{text: "7", returns: false, attempts: [{text: a}]}', "it has no token to split"),
        ("{text: a <|im_end|>}", r"it holds <\|im_end\|>, which would end the generation there"),
    ],
)
def test_a_turn_that_cannot_drift_is_refused_with_the_rule(turn: str, rule: str) -> None:
    with pytest.raises(PlaybookError, match=rf"turns\[0\]: cannot drift: {rule}"):
        playbook_from(f"sampling: drifting\n{_turn(turn)}")
