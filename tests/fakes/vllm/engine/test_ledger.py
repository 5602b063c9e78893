"""The ledger keeps every row in order of arrival, wakes those who wait, and never forgets in silence."""

import asyncio

import jsonschema
import orjson
import pytest

from fakes.vllm.ledger import Ledger, ReceivedRequest, Row, ledger_schema

REQUEST: ReceivedRequest = {"method": "POST", "path": "/v1/chat/completions", "headers": [], "body_text": "{}"}


def _open(ledger: Ledger, tenant: str = "a", run: int | None = None) -> Row:
    row = ledger.open(tenant=tenant, profile="0.32", endpoint="chat", request=REQUEST)
    if run is not None:
        ledger.change(row, run=run)
    return row


def test_rows_are_listed_in_order_of_arrival_by_everything_given() -> None:
    ledger = Ledger()
    rows = [_open(ledger, tenant, run) for tenant, run in (("a", 1), ("b", 1), ("a", 2))]
    ledger.change(rows[2], request_id="chatcmpl-1", state="finished")
    assert ledger.listing().rows == rows
    assert ledger.listing(tenant="a").rows == [rows[0], rows[2]]
    assert ledger.listing(run=1).rows == rows[:2]
    assert ledger.listing(tenant="a", run=1).rows == [rows[0]]
    assert ledger.listing(request_id="chatcmpl-1").rows == [rows[2]]
    assert ledger.listing(state="finished").rows == [rows[2]]
    assert ledger.listing(tenant="nobody").rows == []


def test_a_listing_fits_the_published_schema_also_when_all_is_filled_in() -> None:
    ledger = Ledger()
    _open(ledger)
    filled = _open(ledger, run=1)
    ledger.change(
        filled,
        request_id="chatcmpl-1",
        prompt_token_ids=[1],
        generation_token_ids=[2],
        generation_log_probs=[-0.5],
        stop_reason="STOP",
        message={"content": "a"},
        rendered_ids=[1],
        usage={"prompt_tokens": 1},
        status=200,
        state="cut",
        fault="cut_stream",
    )
    listing = orjson.loads(orjson.dumps(ledger.listing().to_json()))
    validator = jsonschema.Draft202012Validator(ledger_schema())
    validator.check_schema(ledger_schema())
    validator.validate(listing)
    listing["rows"][1]["surprise"] = 1
    assert list(validator.iter_errors(listing))


def test_changing_a_field_that_no_row_has_is_an_error() -> None:
    ledger = Ledger()
    with pytest.raises(AttributeError):
        ledger.change(_open(ledger), colour="red")


def test_deleting_needs_a_tenant_or_a_run_and_leaves_the_others() -> None:
    ledger = Ledger()
    rows = [_open(ledger, tenant, run) for tenant, run in (("a", 1), ("b", 1), ("a", 2))]
    with pytest.raises(ValueError, match="name a tenant or a run"):
        ledger.delete()
    assert ledger.delete(tenant="a", run=1) == 1
    assert ledger.delete(run=2) == 1
    assert ledger.listing().rows == [rows[1]]


def test_rows_that_made_room_are_counted_in_every_later_listing_of_their_tenant() -> None:
    ledger = Ledger(limit=2)
    _open(ledger, "a")
    kept = [_open(ledger, "b"), _open(ledger, "b")]
    assert ledger.listing().rows == kept
    assert [ledger.listing(tenant=tenant).evicted for tenant in ("a", "b")] == [1, 0]
    assert ledger.listing().to_json()["evicted"] == 1


def test_a_row_that_made_room_can_still_be_changed() -> None:
    ledger = Ledger(limit=1)
    gone = _open(ledger)
    _open(ledger)
    ledger.change(gone, state="finished")
    assert ledger.listing(state="finished").rows == []


@pytest.mark.anyio
async def test_waiting_ends_when_so_many_rows_are_in_the_state() -> None:
    ledger = Ledger()
    rows = [_open(ledger, "a"), _open(ledger, "b"), _open(ledger, "a")]
    waiting = asyncio.create_task(ledger.wait("finished", 2, 30, tenant="a"))
    for row in rows[:2]:
        await asyncio.sleep(0)
        ledger.change(row, state="finished")
    await asyncio.sleep(0)
    assert not waiting.done()
    ledger.change(rows[2], state="finished")
    found = await waiting
    assert found is not None
    assert found.rows == [rows[0], rows[2]]


@pytest.mark.anyio
async def test_a_state_that_a_row_only_passes_through_is_seen() -> None:
    ledger = Ledger()
    waiting = asyncio.create_task(ledger.wait("generating", 1, 30))
    await asyncio.sleep(0)
    row = _open(ledger)
    ledger.change(row, state="generating")
    ledger.change(row, state="finished")
    found = await asyncio.wait_for(waiting, 5)
    assert found is not None
    assert found.rows == [row]


@pytest.mark.anyio
async def test_waiting_for_what_is_there_already_returns_at_once() -> None:
    ledger = Ledger()
    row = _open(ledger)
    found = await ledger.wait("received", 1, 0)
    assert found is not None
    assert found.rows == [row]


@pytest.mark.anyio
async def test_waiting_in_vain_ends_with_none_and_leaves_no_waiter() -> None:
    ledger = Ledger()
    assert await ledger.wait("finished", 1, 0.01) is None
    cancelled = asyncio.create_task(ledger.wait("finished", 1, 30))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    _open(ledger)
