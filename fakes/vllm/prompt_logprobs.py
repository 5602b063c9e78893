"""Log probs of prompt tokens. No scenario reads their values, so they are a plain function of id and position."""

from array import array
from collections.abc import Sequence

from fakes.vllm.answers import Json, PromptLogProbs
from fakes.vllm.detokenize import Detokenizer


def prompt_logprobs(ids: Sequence[int], wanted: int, words: Detokenizer) -> PromptLogProbs:
    """One mapping a position from id to log prob, rank and text; the first position has none.

    With ``wanted`` 1 or more, the likeliest token stands beside the actual one.
    """
    texts = words.alone(ids)
    rows: PromptLogProbs = [None]
    for position in range(1, len(ids)):
        token = ids[position]
        rank = 2 + (token * 31 + position) % 1000
        row: dict[str, Json] = {str(token): _entry(-4.0 - rank / 512, rank, texts[position])}
        if wanted != 0:
            best = (token + 7919) % words.size
            row[str(best)] = _entry(-1.0 - (position % 64) / 64, 1, words.alone([best])[0])
        rows.append(row)
    return rows


def _entry(log_prob: float, rank: int, text: str) -> Json:
    return {"logprob": array("f", [log_prob])[0], "rank": rank, "decoded_token": text}
