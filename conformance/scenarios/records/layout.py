"""Where a session's records lie in the published layout, whatever a profile says of it."""

import hashlib
from pathlib import Path

from conformance.gauge.check import Inconclusive
from conformance.systems.proxy import ProxyUnderTest


def session_folder(proxy: ProxyUnderTest, session: str) -> Path:
    """Raises Inconclusive where nobody can tell the log directory."""
    if proxy.log_dir is None:
        raise Inconclusive(f"the log directory of {proxy.profile.name} is not known")
    return proxy.log_dir / "sessions" / hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
