"""What a proxy is asked over HTTP: a session where it was attached to, and the context length of its model."""

import json
from queue import Empty, Queue
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

LIMITS_SECONDS = 30.0
RECORDS_SECONDS = 60.0
MOST_BYTES = 1 << 31
JSON = Any


class NoAnswer(Exception):
    """Raised when what was asked for cannot be had; the message is one line. ``status`` is null without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def context_length(base_url: str, model: str) -> int:
    """``max_model_len`` of the model's entry in ``/v1/models``. Raises NoAnswer where it is not a positive integer."""
    listing = _get(f"{base_url}/v1/models", LIMITS_SECONDS)
    rows = listing.get("data") if isinstance(listing, dict) else None
    entries = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for entry in entries:
        if entry.get("id") == model:
            length = entry.get("max_model_len")
            if type(length) is int and length > 0:
                return length
            raise NoAnswer(f"/v1/models says {length!r} for max_model_len of {model}")
    raise NoAnswer(f"/v1/models does not list {model}")


def envelope(base_url: str, session: str) -> JSON:
    """A session's records as the proxy hands them out, None where it knows no such session. Raises NoAnswer."""
    try:
        return _get(f"{base_url}/v1/sessions/{quote(session, safe='')}/completions", RECORDS_SECONDS)
    except NoAnswer as error:
        if error.status == 404:
            return None
        raise


def _get(url: str, seconds: float) -> JSON:
    """In a thread: the time-out of a socket starts anew with every byte, and a proxy may send one now and then."""
    answers: Queue[JSON | NoAnswer] = Queue()

    def ask() -> None:
        try:
            answers.put(_got(url, seconds))
        except NoAnswer as error:
            answers.put(error)

    Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise NoAnswer(f"{url}: no whole answer in {seconds:g} s") from None
    if isinstance(answer, NoAnswer):
        raise answer
    return answer


def _got(url: str, seconds: float) -> JSON:
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=seconds) as response:
            text = response.read(MOST_BYTES + 1)
            if len(text) > MOST_BYTES:
                raise NoAnswer(f"{url} answered with more than {MOST_BYTES} bytes")
            return json.loads(text)
    except NoAnswer:
        raise
    except HTTPError as error:
        error.close()
        raise NoAnswer(f"{url} answered {error.code}", error.code) from None
    except (OSError, ValueError, RecursionError) as error:
        raise NoAnswer(f"{url}: {error}") from None
    except Exception as error:  # http.client's own: a status line that is none, an answer cut short
        raise NoAnswer(f"{url}: {type(error).__name__}: {error}") from None
