"""An answer that is not captured, in a dialect that is not the engine's: translated as it comes."""

import asyncio

from conformance.reference.capture import jsontext
from conformance.reference.capture.answers import client_view, read_answer
from conformance.reference.capture.client import EVENTS_TYPE, Client
from conformance.reference.capture.dialects import Relay
from conformance.reference.capture.errors import engine_garbage, engine_unreachable, from_engine
from conformance.reference.capture.events import DONE, EventReader
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.requests import Call
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers


async def pass_translated(engine: Engine, workers: Workers, call: Call, client: Client, relay: Relay) -> None:
    """Ask the engine and answer the client; a stream stays a stream. Raises Refusal, maybe after the answer began."""
    if call.asked.stream:
        await _relayed(engine, call, client, relay)
        return
    body = await engine.complete(call.route, call.payload)
    await client.whole(200, await workers.sized(len(body), lambda: _translated(call, body)))


def _translated(call: Call, body: bytes) -> bytes:
    view = client_view(read_answer(body), call.asked)
    return jsontext.write(call.dialect.answer(view, call))


async def _relayed(engine: Engine, call: Call, client: Client, relay: Relay) -> None:
    reader = EventReader()
    complete = False
    async with engine.opened(call.route, call.payload) as response:
        async for data in response.content.iter_any():
            for event in reader.feed(data):
                complete = complete or event == DONE
                if not complete:
                    await _tell(client, relay.chunk(_chunk(call, event)))
    if not complete:
        raise engine_unreachable()
    await _tell(client, relay.end())
    await client.finish()


async def _tell(client: Client, frames: bytes) -> None:
    if not frames:
        return
    if not client.started:
        await client.start(200, EVENTS_TYPE, [(b"cache-control", b"no-cache")])
    await client.part(frames)
    await asyncio.sleep(0)


def _chunk(call: Call, event: bytes) -> JSONObject:
    try:
        chunk: JSON = jsontext.read_engine(event)
    except ValueError:
        raise engine_garbage("a chunk that is not JSON") from None
    if not isinstance(chunk, dict):
        raise engine_garbage("a chunk that is not a JSON object")
    error = chunk.get("error")
    if error:
        code = error.get("code") if isinstance(error, dict) else None
        raise from_engine(call.route, code if type(code) is int and 400 <= code < 600 else 500, event, None)
    return chunk
