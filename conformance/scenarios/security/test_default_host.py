"""Who started a proxy without a thought about hosts has not opened its records to the network."""

import ipaddress

import psutil

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.routing import Route

HOST = "--host"


@covers("SEC-010")
async def test_without_a_host_nobody_else_reads_the_records(own_proxy: OwnProxies, check: Check) -> None:
    proxy = await own_proxy([Route("policy-model")], arguments=_without_host)
    addresses = _listening(proxy)
    open_ones = [address for address in addresses if not ipaddress.ip_address(address).is_loopback]
    statuses = [(await proxy.sessions_answer()).status, (await proxy.completions_answer("none")).status]
    guarded = all(status in (401, 403) for status in statuses)
    expected = "loopback, or 401 or 403 without a key"
    check("SEC-010", not open_ones or guarded, expected=expected, seen={"listens": addresses, "statuses": statuses})


def _without_host(command: list[str]) -> list[str]:
    if HOST not in command:
        raise Inconclusive(f"its command line has no {HOST} that could be left out")
    place = command.index(HOST)
    return [*command[:place], *command[place + 2 :]]


def _listening(proxy: ProxyUnderTest) -> list[str]:
    """The addresses that the proxy and its children listen on."""
    process = psutil.Process(proxy.pid)
    sockets = [one for each in (process, *process.children(recursive=True)) for one in each.net_connections("tcp")]
    found = sorted({one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN})
    if not found:
        raise Inconclusive("nothing of the proxy's own is seen to listen; it may run elsewhere, as in a container")
    return found
