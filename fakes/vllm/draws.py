"""One draw: where a request stands in the playbook, and what that place says."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fakes.vllm.playbook import Answer, Content, Playbook, Sampling
from fakes.vllm.prompts import Prompt
from fakes.vllm.sample import SampleRequest
from fakes.vllm.tags import Tag, format_tag
from fakes.vllm.tenants import Tenant

OFF_SCRIPT_TEXT = "off script"
OFF_SCRIPT = Answer(text=OFF_SCRIPT_TEXT)


@dataclass(frozen=True, slots=True)
class Draw:
    """A request with its prompt, the most tokens it may get, and the answer that is due.

    ``tag`` is the turn asked for, None when the prompt carries none; ``playbook`` is None when its run is unknown.
    ``rule`` names the side call. ``attempt`` counts earlier generations of the same turn or side call.
    """

    request: SampleRequest
    tenant: Tenant
    prompt: Prompt
    room: int
    tag: Tag | None
    playbook: Playbook | None
    answer: Answer
    rule: str | None
    attempt: int

    def content(self) -> tuple[Content, int]:
        """The content of this attempt, and the attempt it is sampled as: a repeated one is the same to the bit."""
        if self.answer.attempts == "fresh":
            return self.answer, self.attempt
        contents = self.answer.contents()
        effective = min(self.attempt, len(contents) - 1)
        return contents[effective], effective

    @property
    def is_off_script(self) -> bool:
        return self.answer is OFF_SCRIPT

    def sampling(self, content: Content) -> Sampling:
        """Neutral and off-script answers are always faithful."""
        if self.playbook is None or self.is_off_script:
            return "faithful"
        return content.sampling or self.answer.sampling or self.playbook.sampling

    def place(self, effective: int, choice: int) -> str:
        """What log probs and splits depend on."""
        if self.tag is None:
            return json.dumps([self.tenant.name, "no tag", choice])
        which = self.tag.turn if self.rule is None else self.rule
        return json.dumps([self.tenant.name, self.tag.run, self.tag.scope, which, effective, choice])

    def seed(self) -> int:
        """Of 31 bits, for an engine that samples by itself what depends on the same things here."""
        place = self.place(self.content()[1], 0)
        return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=4).digest()) >> 1

    def user_speaks_later(self) -> bool:
        """Whether the playbook goes on after an answer without a call, from this turn on."""
        if self.playbook is None or self.tag is None or self.rule is not None:
            return False
        later = (self.playbook.turns_of(self.tag.scope) or [])[self.tag.turn : -1]
        return any(not content.calls for turn in later for content in turn.contents())

    def fill(self, value: Any) -> Any:
        """``value`` with its tag placeholders filled in, at any depth."""
        if self.tag is None or self.playbook is None:
            return value
        if isinstance(value, str):
            return self._fill_text(value) if "{tag" in value else value
        if isinstance(value, Mapping):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return value

    def fill_gate(self) -> str | None:
        gate = self.answer.gate
        return gate.replace("{run}", f"{self.tag.run:06d}") if gate is not None and self.tag is not None else gate

    def _fill_text(self, text: str) -> str:
        tag, playbook = self.tag, self.playbook
        if tag is None or playbook is None:
            return text
        next_turn = tag.turn + (1 if self.rule is None else 0)
        text = text.replace("{tag}", format_tag(tag.run, tag.scope, next_turn))
        for number, name in enumerate(playbook.scopes):
            text = text.replace(f"{{tag:{name}}}", format_tag(tag.run, number, 0))
        return text
