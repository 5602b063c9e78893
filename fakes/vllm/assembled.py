"""An assembled answer as faults take hold of it: its choices, and where each token's id and log prob stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fakes.vllm.answers import Json
from fakes.vllm.sample import Fault
from fakes.vllm.writing_faults import Writing


@dataclass(slots=True)
class Answer:
    """An assembled answer as a fault may change it: one body, or the bodies of the chunks of a stream."""

    bodies: list[Any]
    streamed: bool
    writing: Writing

    def choices(self) -> Iterator[Json]:
        for body in self.bodies:
            yield from body.get("choices", ())

    def tokens(self) -> list["Token"]:
        """Every place where choice 0 shows a token's id or log prob, in order."""
        found: list[Token] = []
        for choice in self.choices():
            if choice.get("index") == 0:
                found.extend(_tokens_of(choice))
        return found

    def token(self, fault: Fault) -> "Token | None":
        """The place of ``at_token``, counted from 0; without it the first, beyond the end the last."""
        tokens = self.tokens()
        return tokens[min(fault.at_token or 0, len(tokens) - 1)] if tokens else None

    def reported_ids(self) -> list[int]:
        """The ids of choice 0 as the answer shows them: what the engine reported, however odd."""
        ids: list[int] = []
        for choice in self.choices():
            if choice.get("index") == 0:
                ids.extend(choice.get("token_ids") or ())
        return ids


@dataclass(frozen=True, slots=True)
class Token:
    """One token of one choice: where its id stands and where its log prob does."""

    choice: Json
    position: int

    def set_id(self, value: object) -> None:
        ids = self.choice.get("token_ids")
        if isinstance(ids, list) and self.position < len(ids):
            ids[self.position] = value
        triple = triple_of(self.choice)
        if triple is not None:
            triple["generation_token_ids"][self.position] = value

    def set_log_prob(self, value: object) -> None:
        log_probs = self.choice.get("logprobs")
        if isinstance(log_probs, dict) and "content" in log_probs:
            log_probs["content"][self.position]["logprob"] = value
        elif isinstance(log_probs, dict):
            log_probs["token_logprobs"][self.position] = value
        triple = triple_of(self.choice)
        if triple is not None:
            triple["generation_log_probs"][self.position] = value

    def entry(self) -> Json | None:
        """The token's log prob entry in chat form."""
        log_probs = self.choice.get("logprobs")
        if isinstance(log_probs, dict) and "content" in log_probs:
            found: Json = log_probs["content"][self.position]
            return found
        return None


def triple_of(choice: Json) -> Json | None:
    """The message of a choice, where NeMo-RL's server puts the token triple into it."""
    message = choice.get("message")
    return message if isinstance(message, dict) and "generation_token_ids" in message else None


def _tokens_of(choice: Json) -> list[Token]:
    ids = choice.get("token_ids")
    log_probs = choice.get("logprobs")
    if isinstance(ids, list):
        count = len(ids)
    elif isinstance(log_probs, dict):
        count = len(log_probs["content"] if "content" in log_probs else log_probs["token_logprobs"])
    else:
        count = 0
    return [Token(choice, position) for position in range(count)]
