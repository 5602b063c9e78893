"""What the suite knows of a system under test: a TOML file, and nothing imported from the system itself.

A command line of a profile may use ``{python} {here} {config} {log_dir} {host} {port} {engine}``: the interpreter,
the folder of the profile, the routing file written for this run, the directory for records, the address to listen on,
and the engine's base URL; a profile with an ``[install]`` table also ``{venv} {checkout}``, and its interpreter is the
one installed there. It runs in a folder of its own. Any other name in braces is refused (see ``placeholders``).

A profile may say ``like = "NAME"``: what it does not say itself, key by key of the topmost level, is as there.
"""

import sys
from pathlib import Path

from conformance.contract.vocabulary import SystemKind
from conformance.systems import capabilities, needs, placeholders
from conformance.systems.needs import Needs
from conformance.systems.profile import (
    ADDRESSES,
    CARRIER_FORMS,
    OPTIONAL_KEYS,
    PARENT_CAPABILITY,
    ROUTING_FORMS,
    SESSION_PREFIX,
    VALIDITIES,
    Attach,
    Carrier,
    Profile,
    Retrieval,
    Routing,
    Runner,
    Setup,
    Start,
)
from conformance.systems.tables import ProfileError, Table

OF_THE_PROFILE = ("python", "here")
"""Placeholders that every text to fill may use."""
OF_A_START = ("config", "log_dir", "host", "engine")
"""Further ones of a proxy that the suite starts; its command may use ``{port}`` too."""


def load(path: Path) -> Profile:
    """The profile in a file. Raises :class:`ProfileError`: file, key, what is expected."""
    table, like = _whole(path)
    kind = SystemKind(table.one_of("kind", list(SystemKind)))
    if kind is SystemKind.SERVER:
        raise table.wrong("kind", f"{kind} is reserved for later; expected proxy, rebuild or rollout")
    proxy = kind is SystemKind.PROXY
    name = table.take("name", str)
    install = needs.read(table.optional_table("install"), like or name)
    profile = Profile(
        file=path,
        name=name,
        kind=kind,
        about=table.take("about", str, ""),
        version=table.optional("version", str),
        version_command=table.strings("version_command", ()),
        capabilities=_capabilities(table),
        python=table.take("python", str, sys.executable if install is None else str(install.interpreter)),
        install=install,
        start=_start(table, proxy, _of_the_profile(install)),
        attach=_attach(table.optional_table("attach")) if proxy else None,
        routing=_routing(table.optional_table("routing"), path) if proxy else None,
        carriers=_carriers(table.optional_table("session")) if proxy else {},
        open=_open(table.optional_table("open")) if proxy else None,
        retrieval=_retrieval(table.optional_table("retrieval")) if proxy else None,
        runner=_runner(table.optional_table("runner")) if kind is SystemKind.ROLLOUT else None,
    )
    table.done()
    placeholders.refuse_unknown(table, "version_command", profile.version_command, _of_the_profile(install))
    _check_as_a_whole(profile, table)
    return profile


def _whole(path: Path) -> tuple[Table, str | None]:
    """With what it takes from the profile it is like, and the name of that one."""
    table = Table.read(path)
    like = table.optional("like", str)
    return (table if like is None else Table.read(path.with_name(f"{like}.toml")).overlaid(table)), like


def _of_the_profile(install: Needs | None) -> tuple[str, ...]:
    if install is None:
        return OF_THE_PROFILE
    return (*OF_THE_PROFILE, "venv") if install.checkout is None else (*OF_THE_PROFILE, "venv", "checkout")


def _capabilities(table: Table) -> frozenset[str]:
    declared = table.strings("capabilities")
    for name in declared:
        if name not in capabilities.known():
            raise table.wrong("capabilities", f"unknown {name!r}; allowed: {', '.join(capabilities.known())}")
    alone = capabilities.unfounded(declared)
    if alone is not None:
        name, bases = alone
        asked = " or ".join(repr(base) for base in bases)
        raise table.wrong("capabilities", f"{name!r} rests on {asked}, which is not there; add it, or drop {name!r}")
    return frozenset(declared)


def _start(profile: Table, listens: bool, own: tuple[str, ...]) -> Start | None:
    table = profile.optional_table("start")
    if table is None:
        return None
    start = Start(
        command=table.strings("command"),
        env=table.string_map("env"),
        address=table.one_of("address", ADDRESSES, "announced") if listens else "announced",
        ready=table.take("ready", str, "tcp") if listens else "tcp",
        deadline_seconds=table.take("deadline_seconds", float, 30.0),
        grace_seconds=table.take("grace_seconds", float, 5.0),
        setup=tuple(_setup(entry) for entry in table.tables("setup")) if listens else (),
    )
    table.done()
    known = (*own, *OF_A_START) if listens else own
    placeholders.refuse_unknown(table, "command", start.command, (*known, "port") if listens else known)
    for name, value in start.env.items():
        placeholders.refuse_unknown(table, f"env.{name}", [value], known)
    if not start.command:
        raise table.wrong("command", "is empty; expected the program and its arguments")
    if start.ready != "tcp" and not start.ready.startswith("/"):
        raise table.wrong("ready", f"expected tcp or a path that begins with /, seen {start.ready!r}")
    if start.address == "given" and not any("{port}" in word for word in start.command):
        raise table.wrong("command", 'address = "given" needs {port} in the command')
    return start


def _setup(table: Table) -> Setup:
    setup = Setup(table.take("method", str, "POST"), table.take("path", str), table.take("json", str, ""))
    table.done()
    placeholders.refuse_unknown(table, "json", [setup.json], (*OF_THE_PROFILE, *OF_A_START))
    return setup


def _open(table: Table | None) -> Setup | None:
    if table is None:
        return None
    setup = Setup(table.take("method", str, "POST"), table.take("path", str), table.take("json", str, ""))
    table.done()
    for key, text in (("path", setup.path), ("json", setup.json)):
        placeholders.refuse_unknown(table, key, [text], ("session",))
    return setup


def _attach(table: Table | None) -> Attach | None:
    if table is None:
        return None
    attach = Attach(table.take("url", str), table.take("engine", str), table.optional("log_dir", str))
    table.done()
    for name, url in (("url", attach.url), ("engine", attach.engine)):
        if not url.startswith("http://") or url.count("/") != 2 or not url.rpartition(":")[2].isdigit():
            raise table.wrong(name, f"expected http://HOST:PORT and no more, seen {url!r}")
    return attach


def _routing(table: Table | None, path: Path) -> Routing | None:
    if table is None:
        return None
    form = table.one_of("form", ROUTING_FORMS, "contract")
    template = table.optional("template", str)
    routing = Routing(
        form=form,
        optional_keys=table.strings("optional_keys", ()),
        template=None if template is None else path.parent / template,
        routes=table.strings("routes", ()),
        aliases=table.take("aliases", bool, True),
    )
    table.done()
    for key in routing.optional_keys:
        if key not in OPTIONAL_KEYS:
            raise table.wrong("optional_keys", f"unknown {key!r}; allowed: {', '.join(OPTIONAL_KEYS)}")
    if (form == "template") != (template is not None):
        raise table.wrong("template", 'needed with form = "template", and only there')
    if routing.template is not None and not routing.template.is_file():
        raise table.wrong("template", f"no such file beside the profile: {template}")
    return routing


def _carriers(table: Table | None) -> dict[str, Carrier]:
    if table is None:
        return {}
    return {name: _carrier(table.table(name)) for name in table.names()}


def _carrier(table: Table) -> Carrier:
    given = [form for form in CARRIER_FORMS if form in table.names()]
    if len(given) != 1:
        raise ProfileError(table.file, table.at, f"expected exactly one of {', '.join(CARRIER_FORMS)}")
    form = given[0]
    value = table.take(form, str)
    table.done()
    if form in ("url", "key"):
        placeholders.refuse_unknown(table, form, [value], ("session",))
    if form in ("url", "key") and "{session}" not in value:
        raise table.wrong(form, f"expected a text with {{session}}, seen {value!r}")
    return Carrier(form, value)


def _retrieval(table: Table | None) -> Retrieval | None:
    if table is None:
        return None
    retrieval = Retrieval(
        sessions=table.optional("sessions", str),
        completions=table.optional("completions", str),
        session_rows=table.take("session_rows", str, "sessions"),
        record_rows=table.take("record_rows", str, "completions"),
        records_on_disk=table.optional("records_on_disk", str),
        loss_mark=table.optional("loss_mark", str),
        delivery_mark=table.optional("delivery_mark", str),
        fields=table.string_map("fields"),
        session_id=table.take("session_id", str, "session_id"),
        validity=table.one_of("validity", VALIDITIES, "flag"),
        lag_seconds=table.take("lag_seconds", float, 0.0),
    )
    table.done()
    for key, text, allowed in (
        ("completions", retrieval.completions, ("session",)),
        ("records_on_disk", retrieval.records_on_disk, ("sha256",)),
        ("loss_mark", retrieval.loss_mark, ("sha256",)),
        ("delivery_mark", retrieval.delivery_mark, ("sha256", "uuid")),
    ):
        placeholders.refuse_unknown(table, key, [] if text is None else [text], allowed)
    return retrieval


def _runner(table: Table | None) -> Runner | None:
    if table is None:
        return None
    runner = Runner(table.strings("proxy"), table.strings("ray", ()), table.strings("ray_local", ()))
    table.done()
    placeholders.refuse_unknown(table, "proxy", runner.proxy, ())
    placeholders.refuse_unknown(table, "ray", runner.ray, ("address",))
    placeholders.refuse_unknown(table, "ray_local", runner.ray_local, ())
    if not runner.proxy:
        raise table.wrong("proxy", "is empty; expected the program and its arguments")
    return runner


def _check_as_a_whole(profile: Profile, table: Table) -> None:
    if (profile.start is None) == (profile.attach is None):
        raise table.wrong("start", "expected either a [start] or an [attach] table")
    if profile.kind is SystemKind.REBUILD:
        return
    if profile.kind is SystemKind.ROLLOUT:
        _check_runner(profile, table)
        return
    if profile.start is not None and profile.routing is None:
        raise table.wrong("routing", "is missing; a proxy that the suite starts needs it")
    ways = {name for name in profile.capabilities if name.startswith(SESSION_PREFIX) or name == PARENT_CAPABILITY}
    for name in sorted(ways ^ set(profile.carriers)):
        lacking = f"is missing; capabilities has {name!r}: add the entry, or drop it there"
        undeclared = f"is not declared; add {name!r} to capabilities, or drop this entry"
        raise table.wrong(f"session.{name}", lacking if name in ways else undeclared)
    needed = {
        "retrieval-http": profile.retrieval and profile.retrieval.sessions and profile.retrieval.completions,
        "records-disk": profile.retrieval and profile.retrieval.records_on_disk,
        "loss-mark": profile.retrieval and profile.retrieval.loss_mark,
        "delivery-mark": profile.retrieval and profile.retrieval.delivery_mark,
    }
    for capability, place in needed.items():
        if capability in profile.capabilities and not place:
            raise table.wrong("retrieval", f"says nothing of what the capability {capability} needs")


def _check_runner(profile: Profile, table: Table) -> None:
    if profile.runner is None:
        raise table.wrong("runner", "is missing; a rollout runner says which capture proxy it can spawn")
    if "ray" in profile.capabilities and not profile.runner.ray:
        raise table.wrong("runner.ray", "is missing; the capability ray needs the arguments for it")
