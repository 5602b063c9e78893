"""A gate holds until it is opened, and stays open."""

import asyncio

import pytest

from fakes.vllm.gates import Gates


@pytest.mark.anyio
async def test_all_who_wait_go_on_once_it_is_opened_and_nobody_else() -> None:
    gates = Gates()
    here = [asyncio.create_task(gates.wait("a", "half")) for _ in range(2)]
    there = [asyncio.create_task(gates.wait(tenant, name)) for tenant, name in (("b", "half"), ("a", "other"))]
    await asyncio.sleep(0)
    gates.open("a", "half")
    await asyncio.gather(*here)
    assert not any(task.done() for task in there)
    for task in there:
        task.cancel()


@pytest.mark.anyio
async def test_an_open_gate_stays_open() -> None:
    gates = Gates()
    gates.open("a", "half")
    await gates.wait("a", "half")
    await gates.wait("a", "half")


@pytest.mark.anyio
async def test_a_wait_that_was_given_up_leaves_the_others_waiting() -> None:
    gates = Gates()
    given_up, patient = (asyncio.create_task(gates.wait("a", "half")) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    assert not patient.done()
    gates.open("a", "half")
    await patient


def test_a_tenant_that_is_created_anew_has_its_gates_closed() -> None:
    gates = Gates()
    gates.open("a", "half")
    gates.open("b", "half")
    gates.forget("a")
    assert (gates.is_open("a", "half"), gates.is_open("b", "half")) == (False, True)
