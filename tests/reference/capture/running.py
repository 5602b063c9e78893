"""The reference proxy as a process of its own, and a client for it."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import yaml

JSON = Any
COMMAND = (sys.executable, "-m", "conformance.reference.capture")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> JSON:
        return json.loads(self.raw)

    @property
    def chunks(self) -> list[JSON]:
        frames = [frame for frame in self.raw.decode().split("\n\n") if frame.startswith("data: {")]
        return [json.loads(frame.removeprefix("data: ")) for frame in frames]


class Proxy:
    """A running proxy; ``start`` is the command in front of the contract's arguments."""

    def __init__(
        self,
        folder: Path,
        profile: JSON,
        *,
        start: tuple[str, ...] = COMMAND,
        capture: bool = True,
        log_dir: Path | None = None,
        env: Mapping[str, str] | None = None,
        limits: str = "",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_dir = log_dir or folder / "records"
        self.log = folder / "proxy.log"
        profiles = folder / "routing.yaml"
        profiles.write_text(profile if isinstance(profile, str) else yaml.safe_dump(profile, sort_keys=False))
        flags = ["--enable-rl-logging", "--rl-log-dir", str(self.log_dir)] if capture else []
        command = [*start, "--routing-profiles", str(profiles), *flags, "--", "serve", "--port", "0"]
        if limits:
            command = ["sh", "-c", f'{limits}; exec "$@"', "sh", *command]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(env or {})}, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), self.log.read_text()
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(15)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, raw)

    def chat(self, session: str | None = None, headers: Mapping[str, str] | None = None, **body: JSON) -> Reply:
        """One chat call to the route ``policy``; ``session`` goes into the body."""
        asked = {"model": "policy", "messages": [{"role": "user", "content": "hi"}], **body}
        if session is not None:
            asked["proxy_x_session_id"] = session
        return self.call("POST", "/v1/chat/completions", json.dumps(asked).encode(), headers)

    def envelope(self, session: str) -> JSON:
        path = quote(session.encode("utf-8", "surrogatepass"), safe="")
        return self.call("GET", f"/v1/sessions/{path}/completions").json

    def records(self, session: str) -> list[JSON]:
        return list(self.envelope(session).get("completions", []))

    def sessions(self) -> list[JSON]:
        return list(self.call("GET", "/v1/sessions").json["sessions"])


def route(base_url: str, **keys: JSON) -> JSON:
    """A capture route of the profile."""
    return {"type": "model", "target": "served", "base_url": base_url, "token_capture_engine": "vllm", **keys}
