"""The blocks of a streamed message of the Messages dialect, rule by rule: their life cycle and what they hold.

Every rule stands alone, so that one fault of a stream is one finding. None raises, whatever a body holds.
"""

from dataclasses import dataclass, field

from conformance.oracle.chat_answers import Object, json_object
from conformance.oracle.judgement import Judgement
from conformance.oracle.messages_answers import PIECES
from conformance.oracle.named_events import inner, kind_of, of_kind, text_in, told

WHERE = "messages stream"
_DELTAS = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "tool_use": ("input_json_delta",),
    "server_tool_use": ("input_json_delta",),
}
"""The kinds of delta each kind of block takes; other blocks come whole in their start."""


@dataclass(slots=True)
class Block:
    """One block as its events tell it; ``place`` counts the starts."""

    place: int
    start: Object
    deltas: list[Object] = field(default_factory=list)

    @property
    def content(self) -> Object:
        return inner(self.start, "content_block")

    @property
    def kind(self) -> str:
        return kind_of(self.content)


def blocks_in_turn(body: str) -> Judgement:
    """Blocks are numbered from 0, each opened once and closed once before the next opens; no delta stands outside."""
    opened, is_open = -1, False
    for one in of_kind(told(body)[1], "content_block_start", "content_block_delta", "content_block_stop"):
        index, kind = one.get("index"), kind_of(one)
        starts = kind == "content_block_start"
        expected = opened + 1 if starts else opened
        if starts == is_open or type(index) is not int or index != expected:
            wanted = f"a delta or stop of block {opened}" if is_open else f"a start of block {opened + 1}"
            return Judgement(False, wanted, f"{kind} of block {index}", WHERE)
        opened, is_open = index, kind != "content_block_stop"
    return Judgement(not is_open, "every block closed", f"block {opened} {'open' if is_open else 'closed'}", WHERE)


def blocks_open_empty(body: str) -> Judgement:
    """A block that deltas fill opens without content: clients append to what the start holds, or ignore it."""
    for block in blocks_of(body):
        held = {key: block.content.get(key) for key in ("text", "thinking", "signature", "input")}
        filled = {key: value for key, value in held.items() if value}
        if block.kind in _DELTAS and filled:
            return Judgement(False, "an empty start", filled, _of(block))
    return Judgement(True, "every start empty", "every start empty", WHERE)


def deltas_fit(body: str) -> Judgement:
    """Text, thinking and tool blocks hold deltas of their own kinds with a text in them; others hold none."""
    for block in blocks_of(body):
        if not block.kind:
            return Judgement(False, "a content_block with a type", block.start, _of(block))
        for delta in block.deltas:
            kind = kind_of(delta)
            if kind not in _DELTAS.get(block.kind, ()):
                return Judgement(False, f"a delta of {block.kind}", delta, _of(block))
            if kind in PIECES and not isinstance(delta.get(PIECES[kind]), str):
                return Judgement(False, f"a text under {PIECES[kind]}", delta, _of(block))
    return Judgement(True, "deltas that fit their blocks", "deltas that fit", WHERE)


def signature_last(body: str) -> Judgement:
    """A thinking block is signed at most once, behind all of its thinking."""
    for block in blocks_of(body):
        kinds = [kind_of(delta) for delta in block.deltas]
        if "signature_delta" in kinds[:-1]:
            return Judgement(False, "one signature_delta, last", kinds[-3:], _of(block))
    return Judgement(True, "one signature a block, last", "at most one", WHERE)


def tools_named(body: str) -> Judgement:
    """Each tool use opens with a name and an id that no other block of the message has."""
    seen: set[str] = set()
    for block in blocks_of(body):
        if block.kind != "tool_use":
            continue
        id_ = text_in(block.content, "id")
        if not id_ or not text_in(block.content, "name"):
            return Judgement(False, "an id and a name", block.content, _of(block))
        if id_ in seen:
            return Judgement(False, "an id of its own", id_, _of(block))
        seen.add(id_)
    return Judgement(True, "an id and a name for each tool use", f"{len(seen)} tool uses", WHERE)


def inputs_parse(body: str) -> Judgement:
    """The pieces of each tool input make a JSON object, or nothing at all. Not so where the engine's own do not."""
    for block in blocks_of(body):
        given = "".join(text_in(delta, "partial_json") for delta in block.deltas)
        if given and json_object(given) is None:
            return Judgement(False, "a JSON object", given[:200], _of(block))
    return Judgement(True, "inputs that are JSON objects", "inputs that are JSON objects", WHERE)


def blocks_of(body: str) -> list[Block]:
    """Every block that was opened, with the deltas that name its index while it is the latest of that index."""
    found: list[Block] = []
    latest: dict[str, Block] = {}
    for one in of_kind(told(body)[1], "content_block_start", "content_block_delta"):
        index = str(one.get("index"))
        if kind_of(one) == "content_block_start":
            found.append(Block(len(found), one))
            latest[index] = found[-1]
        elif index in latest:
            latest[index].deltas.append(inner(one, "delta"))
    return found


def _of(block: Block) -> str:
    return f"{WHERE}, block {block.place}"
