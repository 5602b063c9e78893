"""The ledger: the fake's own account of each request it received and each token it sampled."""

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from fakes.vllm.sent import SentAnswer, SentAnswers

SCHEMA_VERSION = 1

State = Literal["received", "held", "generating", "finished", "cut", "aborted", "refused", "failed"]


class ReceivedRequest(TypedDict):
    """A request as it came in. ``headers`` in wire order; ``body_bytes_b64`` only when the body is not UTF-8."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body_text: str
    body_bytes_b64: NotRequired[str]


@dataclass(slots=True)
class Row:
    """One request. ``seq`` rises in order of arrival over all tenants; ids and log probs are what was sampled.

    ``earlier_on_connection``: how many requests had come before on the same connection.
    ``request_id`` is the id in the response. ``attempt`` counts earlier generations of the same turn or side call.
    ``faithful``: the history re-renders to exactly prompt + generation. ``rendered_ids``: for token prompts, the
    canonical render of the decoded conversation. ``status`` is the HTTP status, once decided.
    ``finished``: the whole answer was handed to the socket; ``cut``: a fault cut it; ``aborted``: the client left;
    ``refused``: 4xx before generation; ``failed``: 5xx.
    """

    v: int
    seq: int
    tenant: str
    profile: str
    endpoint: str
    request: ReceivedRequest
    earlier_on_connection: int = 0
    request_id: str | None = None
    model: str | None = None
    run: int | None = None
    scope: int | None = None
    turn: int | None = None
    rule: str | None = None
    attempt: int = 0
    off_script: bool = False
    faithful: bool = False
    streamed: bool = False
    prompt_token_ids: list[int] | None = None
    generation_token_ids: list[int] | None = None
    generation_log_probs: list[float] | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    text: str | None = None
    message: dict[str, Any] | None = None
    rendered_ids: list[int] | None = None
    usage: dict[str, Any] | None = None
    status: int | None = None
    state: State = "received"
    fault: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(item.name for item in dataclasses.fields(Row))


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who waits for rows in a state; ``there`` is kept up row by row, since a thousand may be on the way."""

    tenant: str | None
    run: int | None
    state: State
    count: int
    there: dict[int, Row]
    found: "asyncio.Future[Listing]"

    def see(self, row: Row) -> bool:
        """Whether there are enough rows, now that this one has changed."""
        if row.state == self.state and self.tenant in (None, row.tenant) and self.run in (None, row.run):
            self.there[row.seq] = row
        else:
            self.there.pop(row.seq, None)
        return len(self.there) >= self.count


@dataclass(slots=True)
class Listing:
    """Rows in order of arrival, and how many older ones of the same tenants had to make room."""

    rows: list[Row] = field(default_factory=list)
    evicted: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "evicted": self.evicted,
            "rows": [row.to_json() for row in self.rows],
        }


class Ledger:
    """All rows of one fake. Belongs to one event loop; every change wakes those who wait for it.

    Keeps at most ``limit`` rows: the oldest make room, and every later listing of their tenant says how many.
    """

    def __init__(self, limit: int = 200_000) -> None:
        self._limit = limit
        self._rows: dict[int, Row] = {}
        self._by_tenant: dict[str, dict[int, Row]] = {}
        self._evicted: dict[str, int] = {}
        self._next = 0
        self._waiters: list[_Waiter] = []
        self.sent = SentAnswers()

    def open(
        self, *, tenant: str, profile: str, endpoint: str, request: ReceivedRequest, earlier_on_connection: int = 0
    ) -> Row:
        """Begin the row of a request that has just arrived."""
        row = Row(SCHEMA_VERSION, self._next, tenant, profile, endpoint, request, earlier_on_connection)
        self._next += 1
        self._rows[row.seq] = row
        self._by_tenant.setdefault(tenant, {})[row.seq] = row
        if len(self._rows) > self._limit:
            self._evict()
        self._wake(row)
        return row

    def change(self, row: Row, **fields: Any) -> None:
        """Set fields of a row; raises ``AttributeError`` for a field that no row has."""
        for name, value in fields.items():
            setattr(row, name, value)
        self._wake(row)

    def listing(
        self,
        *,
        tenant: str | None = None,
        run: int | None = None,
        request_id: str | None = None,
        state: State | None = None,
    ) -> Listing:
        """Rows that match everything given."""
        rows = self._rows if tenant is None else self._by_tenant.get(tenant, {})
        found = [
            row
            for row in rows.values()
            if (run is None or row.run == run)
            and (request_id is None or row.request_id == request_id)
            and (state is None or row.state == state)
        ]
        evicted = sum(self._evicted.values()) if tenant is None else self._evicted.get(tenant, 0)
        return Listing(found, evicted)

    def delete(self, *, tenant: str | None = None, run: int | None = None) -> int:
        """Forget the rows of a tenant, a run, or a run of a tenant; returns how many.

        Raises ``ValueError`` when neither is given: nothing of others is ever reset.
        """
        if tenant is None and run is None:
            raise ValueError("name a tenant or a run: the ledger is never emptied as a whole")
        rows = self.listing(tenant=tenant, run=run).rows
        for row in rows:
            self._drop(row)
        if tenant is not None and run is None:
            self._evicted.pop(tenant, None)
        return len(rows)

    async def wait(
        self, state: State, count: int, seconds: float, *, tenant: str | None = None, run: int | None = None
    ) -> Listing | None:
        """The rows in ``state`` as soon as there are ``count`` of them; None after ``seconds``.

        A row that has left the state by the time this returns is among them: that it was in it is what was asked.
        """
        listing = self.listing(tenant=tenant, run=run, state=state)
        if len(listing.rows) >= count:
            return listing
        there = {row.seq: row for row in listing.rows}
        waiter = _Waiter(tenant, run, state, count, there, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            return await asyncio.wait_for(waiter.found, seconds)
        except TimeoutError:
            return None
        finally:
            self._waiters.remove(waiter)

    def _wake(self, row: Row) -> None:
        for waiter in self._waiters:
            if not waiter.found.done() and waiter.see(row):
                waiter.found.set_result(self.listing(tenant=waiter.tenant, run=waiter.run, state=waiter.state))

    def _evict(self) -> None:
        oldest = self._rows[next(iter(self._rows))]
        self._drop(oldest)
        self._evicted[oldest.tenant] = self._evicted.get(oldest.tenant, 0) + 1

    def _drop(self, row: Row) -> None:
        del self._rows[row.seq]
        self.sent.drop(row.seq)
        del self._by_tenant[row.tenant][row.seq]
        for waiter in self._waiters:
            waiter.there.pop(row.seq, None)


def ledger_schema() -> dict[str, Any]:
    """JSON Schema of what ``GET /_fake/ledger`` answers."""
    row = TypeAdapter(Row).json_schema(ref_template="#/$defs/{model}")
    definitions = row.pop("$defs", {})
    row["additionalProperties"] = False
    row["required"] = list(_FIELDS)
    answer = TypeAdapter(SentAnswer | None).json_schema(ref_template="#/$defs/{model}")
    definitions.update(answer.pop("$defs", {}))
    row["properties"]["answer"] = {**answer, "description": "Only in a listing that asks for it: ?answers=true."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ledger",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "evicted": {"type": "integer", "minimum": 0},
            "rows": {"type": "array", "items": row},
        },
        "required": ["schema_version", "evicted", "rows"],
        "additionalProperties": False,
        "$defs": definitions,
    }
