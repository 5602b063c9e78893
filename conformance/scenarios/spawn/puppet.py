"""A proxy or a harness that does what a scenario tells it: a script, started by the runner under test.

``puppet.py HOST:PORT ROLE [arguments…]`` connects to the scenario, says who it is, and obeys one order a line. It is
gone when its connection is, so the scenario knows of its end from the kernel, and it ends when the scenario does.
Standard library only, so that it is up in a few milliseconds whatever environment it was given.
"""

import json
import os
import selectors
import signal
import socket
import sys
from typing import Any

JSON = Any


class Puppet:
    def __init__(self, address: str, role: str) -> None:
        host, _, port = address.rpartition(":")
        self.strings = socket.create_connection((host, int(port)))
        self.role = role
        self.address = address
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.strings, selectors.EVENT_READ, self.obey)
        self.unread = b""
        self.answers: dict[str, JSON] = {}
        self.tell(
            {
                "role": role,
                "pid": os.getpid(),
                "arguments": sys.argv[3:],
                "env": dict(os.environ),
                "cwd": os.getcwd(),
            }
        )

    def tell(self, line: dict[str, JSON]) -> None:
        self.strings.sendall(json.dumps(line).encode() + b"\n")

    def play(self) -> None:
        while True:
            for key, _ in self.ready.select():
                key.data(key.fileobj)

    def obey(self, strings: socket.socket) -> None:
        more = strings.recv(1 << 20)
        if not more:
            os._exit(0)
        *lines, self.unread = (self.unread + more).split(b"\n")
        for line in lines:
            order = json.loads(line)
            getattr(self, order.pop("do"))(**order)
            self.tell({"done": True})

    # Orders

    def listen(self, answers: dict[str, JSON] | None = None) -> None:
        """At the address of the command line; each GET is answered with the JSON of its path, or 404."""
        self.answers = answers or {}
        words = sys.argv[3:]
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((words[words.index("--host") + 1], int(words[words.index("--port") + 1])))
        listener.listen(64)
        self.ready.register(listener, selectors.EVENT_READ, self.accept)

    def accept(self, listener: socket.socket) -> None:
        caller, _ = listener.accept()
        self.ready.register(caller, selectors.EVENT_READ, self.answer)

    def answer(self, caller: socket.socket) -> None:
        request = caller.recv(1 << 16)
        if request:
            path = request.split(b" ", 2)[1].decode()
            status = "200 OK" if path in self.answers else "404 Not Found"
            body = json.dumps(self.answers.get(path)).encode()
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            caller.sendall(head.encode() + body)
        self.ready.unregister(caller)
        caller.close()

    def leave(self, code: int = 0, say: str = "") -> None:
        sys.stderr.write(say)
        sys.stderr.flush()
        os._exit(code)

    def say(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def fork(self, session: bool = False) -> None:
        """A child that is told apart by its role; with ``session`` it leaves its parent's session, and its parent."""
        if os.fork() == 0:
            if session:
                os.setsid()
                if os.fork():
                    os._exit(0)
            for key in list(self.ready.get_map().values()):  # a string that it kept would hide its parent's end
                os.close(key.fd)
            Puppet(self.address, f"{self.role}'s child").play()
        elif session:
            os.wait()

    def ignore(self) -> None:
        """TERM and INT from now on."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def write_when_told_to_end(self, files: dict[str, str]) -> None:
        """On TERM, and then it leaves."""

        def last_act(*_: object) -> None:
            self.write(files)
            os._exit(0)

        signal.signal(signal.SIGTERM, last_act)


if __name__ == "__main__":
    Puppet(sys.argv[1], sys.argv[2]).play()
