"""A system under test as its profile describes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from conformance.contract.vocabulary import SystemKind
from conformance.systems import needs, placeholders
from conformance.systems.needs import Needs

Address = Literal["announced", "given"]
ADDRESSES: tuple[Address, ...] = ("announced", "given")
RoutingForm = Literal["contract", "template", "none"]
ROUTING_FORMS: tuple[RoutingForm, ...] = ("contract", "template", "none")
Validity = Literal["flag", "form"]
VALIDITIES: tuple[Validity, ...] = ("flag", "form")
OPTIONAL_KEYS = ("ping_secs",)
CarrierForm = Literal["header", "body", "url", "key"]
CARRIER_FORMS: tuple[CarrierForm, ...] = ("header", "body", "url", "key")
SESSION_PREFIX = "session-"
PARENT_CAPABILITY = "parent-header"


@dataclass(frozen=True, slots=True)
class Setup:
    """A request sent once the system is ready, before anything else. ``json`` is the text of its body."""

    method: str
    path: str
    json: str


@dataclass(frozen=True, slots=True)
class Start:
    """How the suite starts a system. ``ready`` is ``tcp`` or the path of a URL that answers below 400."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    address: Address
    ready: str
    deadline_seconds: float
    grace_seconds: float
    setup: tuple[Setup, ...]


@dataclass(frozen=True, slots=True)
class Attach:
    """A system that runs already at ``url``. The suite's engine has to listen at ``engine``, which it was given."""

    url: str
    engine: str
    log_dir: str | None


@dataclass(frozen=True, slots=True)
class Routing:
    """``contract``: the contract's YAML, of whose optional keys the system knows these; or a Jinja template; or none.

    The key ``pins`` is not among them: it is a capability. ``routes`` names those of the shared routes that the system
    can have, all if empty. Without ``aliases`` the engine is asked for the model name that the client sent.
    """

    form: RoutingForm
    optional_keys: tuple[str, ...]
    template: Path | None
    routes: tuple[str, ...] = ()
    aliases: bool = True


@dataclass(frozen=True, slots=True)
class Carrier:
    """Where a call carries a session id.

    ``header`` and ``body`` give a name, ``key`` and ``url`` a text with ``{session}``; a ``url`` replaces the
    leading ``/v1`` of a path.
    """

    form: CarrierForm
    value: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How records are read: over HTTP, by paths with ``{session}``; on disk, by patterns with ``{sha256}``
    of the session id (and ``{uuid}`` in ``delivery_mark``).

    ``session_rows`` and ``record_rows`` name the list within the answer, "" if the answer is the list. ``session_id``
    is the id's key in a row of the session list. ``fields`` maps a field of the contract's record to a dotted path in
    the system's: a number is a place in a list, ``*`` all of them, and ``|`` parts paths of which the first counts
    that leads anywhere; empty if the names are the contract's. With ``validity`` "form" the system marks no record as
    invalid, and whole ones count as valid. ``lag_seconds`` is how long after an answer its record may still be under
    way, for a system that does not write it before.
    """

    sessions: str | None
    completions: str | None
    session_rows: str
    record_rows: str
    records_on_disk: str | None
    loss_mark: str | None
    delivery_mark: str | None
    fields: Mapping[str, str]
    session_id: str
    validity: Validity
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Runner:
    """``proxy`` is the command of a capture proxy that the runner can spawn, its first word found beside the
    interpreter; ``ray`` are the arguments with which it runs rollouts on the Ray cluster at ``{address}``, and
    ``ray_local`` those with which it starts one of its own.
    """

    proxy: tuple[str, ...]
    ray: tuple[str, ...]
    ray_local: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """One system under test. A field that has no meaning for its kind is None or empty.

    ``open`` is the request, with ``{session}``, that has to precede the first call of a session, None if none has to.
    ``python`` is the interpreter that ``{python}`` stands for; ``install`` is what has to be there, None if nothing.
    """

    file: Path
    name: str
    kind: SystemKind
    about: str
    version: str | None
    version_command: tuple[str, ...]
    capabilities: frozenset[str]
    python: str
    install: Needs | None
    start: Start | None
    attach: Attach | None
    routing: Routing | None
    carriers: Mapping[str, Carrier]
    open: Setup | None
    retrieval: Retrieval | None
    runner: Runner | None

    def fill(self, text: str, values: Mapping[str, str]) -> str:
        """``text`` with the placeholders replaced that have a value; other braces stay as they are."""
        own = {"python": self.python, "here": str(self.file.absolute().parent), **needs.places(self.install)}
        known = {**own, **values}
        return placeholders.fill(text, known)
