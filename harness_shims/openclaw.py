"""OpenClaw: it knows no session header, so the API key carries the id. Not launched here; its environment only."""

from collections.abc import Mapping

from harness_shims.launching import ShimError, mark_key

KEY_VARIABLE = "SWITCHYARD_API_KEY"
SESSION_VARIABLE = "SWITCHYARD_SESSION_ID"


def environment(base: Mapping[str, str], session: str | None) -> dict[str, str]:
    """``base`` with the marked key, which comes back as the bearer; ``base`` alone with capture off.

    Raises ShimError for a blank id: the proxy would take the marked key for an ordinary credential.
    """
    if session is None:
        return dict(base)
    if not session.strip():
        raise ShimError(f"session id for OpenClaw: expected something not blank, seen {session!r}")
    return {**base, KEY_VARIABLE: mark_key(session), SESSION_VARIABLE: session}
