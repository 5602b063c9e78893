"""What every launch has in common: a command, its whole environment, and the files that it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

DUMMY_KEY = "dummy"
"""A credential that is none: nothing on the loopback asks for one."""
NOWHERE = "http://127.0.0.1:1"
"""Port 1 is reserved for a service that no machine runs any more: whoever goes there is refused at once."""


class ShimError(ValueError):
    """Raised when a harness cannot be configured as asked. The message is one line: what, expected, seen."""


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where a proxy is attached to: a host and a port, nothing else."""

    host: str
    port: int

    @classmethod
    def read(cls, url: str) -> "ProxyAddress":
        """Of exactly ``http://host:port``, a trailing slash allowed. Raises :class:`ShimError`."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        # A bare "?" or "#" leaves no trace in the parts.
        plain = parts.path in ("", "/") and not set(url) & {"?", "#", "@"} and url == url.strip()
        if parts.scheme != "http" or not parts.hostname or not port or not plain:
            raise ShimError(f"proxy address: expected http://HOST:PORT, seen {url!r}")
        return cls(parts.hostname, port)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Launch:
    """A real harness, ready to start. ``env`` is its whole environment.

    ``files`` are texts by path, relative ones below the working directory ``cwd``.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    files: Mapping[PurePosixPath, str] = field(default_factory=dict)

    def lay_out(self) -> None:
        """Writes the files, each for its owner alone."""
        self.cwd.mkdir(parents=True, exist_ok=True)
        for place, text in self.files.items():
            path = self.cwd / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")


def clean_environment(
    home: Path, extra: Mapping[str, str], *, elsewhere: str | None = NOWHERE, path: str = "/usr/bin:/bin"
) -> dict[str, str]:
    """The whole environment of a headless, offline run: a home of its own, nothing of ours.

    Whatever is not loopback is sent to ``elsewhere``, where by default nobody listens; None leaves it to the network.
    """
    sinks: dict[str, str] = {}
    if elsewhere is not None:
        sinks = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), elsewhere)
        sinks |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    own = {"PATH": path, "HOME": str(home), "TMPDIR": str(home / "tmp"), "LANG": "C.UTF-8"}
    return {**own, **sinks, **extra}


def mark_key(session: str) -> str:
    """The API key that carries a session, as OpenClaw sends it."""
    return f"sycap-session:{session}"
