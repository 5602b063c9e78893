"""A capture proxy that runs already: exactly ``http://host:port``, checked before the harness is run behind it."""

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from conformance.contract.rollouts import Stage
from conformance.reference.rollout.failures import RolloutFailed

CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a proxy listens; ``host`` is bare, an IPv6 one without its brackets."""

    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def address_of(text: str) -> Address:
    """Raises RolloutFailed for anything but a host and a port over http; a slash at the end is accepted."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port = None
    # An empty query or fragment leaves no trace in the parts, and blanks around the text are stripped from them.
    plain = text.isprintable() and not set(text) & set("?#@ ") and port
    if not plain or parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise RolloutFailed(Stage.REQUEST, f"proxy.attach: expected http://HOST:PORT and no more, seen {text!r}")
    return Address(parts.hostname, port or 0)


def reach(address: Address) -> None:
    """Raises RolloutFailed where nobody takes connections."""
    try:
        socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise RolloutFailed(Stage.ATTACH, f"no proxy takes connections at {address.url}: {why}") from None
