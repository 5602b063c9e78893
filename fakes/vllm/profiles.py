"""What differs on the wire between vLLM versions: one row of knobs a version.

Source of each knob: the released wheels 0.10.2 to 0.33 and a recorded 0.32 server.
"""

from dataclasses import dataclass, replace
from typing import Literal

OverlongForm = Literal["input-tokens", "requested", "passed", "messages"]
HistoryReasoning = Literal["either", "reasoning", "none"]

DEFAULT = "0.32"


class UnknownProfile(Exception):
    """Raised when a profile is asked for that does not exist; the sentence lists those that do."""

    def __init__(self, name: str) -> None:
        super().__init__(f"profile: unknown {name!r}; allowed: {', '.join(PROFILES)}")


@dataclass(frozen=True, slots=True)
class Profile:
    """One vLLM version as its clients see it.

    ``id_hex`` counts the hex digits of random ids. ``reasoning_keys`` are the keys that carry reasoning text.
    ``overlong`` names the wording family of a prompt that does not fit; ``clamps_max_tokens`` tells whether
    prompt + max_tokens beyond the model's length is cut to what fits (else refused).
    """

    name: str
    version: str
    id_hex: int = 16
    reasoning_keys: tuple[str, ...] = ("reasoning",)
    history_reasoning: HistoryReasoning = "either"
    refuses_malformed_history_arguments: bool = False
    empty_tool_calls: bool = False
    refuses_empty_tools: bool = True
    buffered_reasoning_needs_both_tags: bool = False
    hides_metadata_with_reasoning: bool = True
    partial_text_in_tokens: str = ""
    null_top_logprobs_drop_logprobs: bool = False
    drops_hidden_ids: bool = False
    drops_hidden_logprobs: bool = False
    repeats_logprobs_at_empty_end: bool = False
    spaced_stream_errors: bool = True
    calls_hide_length_buffered: bool = True
    calls_hide_length_streamed: bool = False
    clamps_max_tokens: bool = True
    overlong: OverlongForm = "input-tokens"
    error_params: bool = True
    error_suffix: bool = True
    lists_aliases: bool = True
    fingerprint: bool = True
    prompt_text: bool = True
    routed_experts: bool = True
    transfer_and_metrics: bool = True
    completion_details: bool = True
    choice_weight_versions: bool = False
    chat_token_in: bool = True
    messages_route: bool = True
    count_tokens_route: bool = True
    render_route: bool = True
    generate_route: bool = True
    generate_streams: bool = True
    generate_rich: bool = True
    generate_needs_scale_out: bool = True
    generate_default_16: bool = False
    nemo_rl: bool = False

    @property
    def system_fingerprint(self) -> str | None:
        return f"vllm-{self.version}-f582b821" if self.fingerprint else None


def _versions() -> dict[str, Profile]:
    """Walk back from the newest version; each step states what an older one does differently."""
    rows: dict[str, Profile] = {}
    row = Profile(
        "0.33",
        "0.33.0",
        choice_weight_versions=True,
        spaced_stream_errors=False,
        calls_hide_length_buffered=False,
    )
    rows["0.33"] = row

    def older(name: str, version: str, **knobs: object) -> None:
        nonlocal row
        row = replace(row, name=name, version=version, **knobs)  # type: ignore[arg-type]
        rows[name] = row

    older(
        "0.32",
        "0.32.0",
        choice_weight_versions=False,
        spaced_stream_errors=True,
        calls_hide_length_buffered=True,
    )
    older(
        "0.31",
        "0.31.0",
        null_top_logprobs_drop_logprobs=True,
        clamps_max_tokens=False,
        overlong="requested",
        lists_aliases=False,
        chat_token_in=False,
    )
    older("0.30", "0.30.0", drops_hidden_logprobs=True, calls_hide_length_streamed=True)
    older(
        "0.28",
        "0.28.0",
        repeats_logprobs_at_empty_end=True,
        refuses_malformed_history_arguments=True,
        generate_needs_scale_out=False,
        generate_rich=False,
    )
    older("0.26", "0.26.0", completion_details=False)
    older("0.24", "0.24.0", hides_metadata_with_reasoning=False, transfer_and_metrics=False)
    older("0.22", "0.22.0", empty_tool_calls=True)
    older(
        "0.20",
        "0.20.2",
        fingerprint=False,
        prompt_text=False,
        routed_experts=False,
        history_reasoning="reasoning",
        generate_default_16=True,
    )
    older(
        "0.16",
        "0.16.0",
        overlong="passed",
        partial_text_in_tokens="\ufffd",
        buffered_reasoning_needs_both_tags=True,
        count_tokens_route=False,
        refuses_empty_tools=False,
        generate_streams=False,
    )
    older(
        "0.15",
        "0.15.1",
        reasoning_keys=("reasoning", "reasoning_content"),
        history_reasoning="either",
        overlong="messages",
    )
    older("0.13", "0.13.0", error_params=False, error_suffix=False, render_route=False)
    older("0.12", "0.12.0", drops_hidden_ids=True)
    older("0.11.2", "0.11.2", id_hex=32)
    older(
        "0.10.2",
        "0.10.2",
        reasoning_keys=("reasoning_content",),
        history_reasoning="none",
        messages_route=False,
        generate_route=False,
    )
    rows["nemo-rl"] = replace(rows["0.32"], name="nemo-rl", nemo_rl=True)
    return rows


PROFILES: dict[str, Profile] = _versions()


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises ``UnknownProfile`` with the names that exist.
    """
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(name)
    return found
