"""Systems of somebody else's: where they are kept, what is said while they are not there, and an install for real."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.systems import needs, profiles
from conformance.systems.install import CannotInstall, install
from conformance.systems.inventory import inventory, table
from conformance.systems.needs import Checkout, Needs
from conformance.systems.profile import Profile
from conformance.systems.profile_reading import load
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.runner import RunnerUnderTest
from conformance.systems.servers import SystemNotStarted
from conformance.systems.tables import ProfileError

CHECKOUT = Checkout(variable="TRACKGAUGE_ACME", has="acme/gateway.py", packages=("acme",))
ACME = Needs(name="acme", python="3.11", packages=(), constraints=(), checkout=CHECKOUT)
PROXY = """
name = "acme"
kind = "proxy"
capabilities = ["session-header"]
[install]
python = "3.11"
[install.checkout]
variable = "TRACKGAUGE_ACME"
has = "acme/gateway.py"
packages = ["acme"]
[start]
command = ["{python}", "-m", "acme.gateway", "{checkout}", "{venv}", "{port}"]
address = "given"
[routing]
[session]
session-header = {header = "X-Mine"}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACKGAUGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACKGAUGE_ACME", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "acme").mkdir(parents=True)
    (folder / "acme" / "__init__.py").touch()
    (folder / "acme" / "gateway.py").write_text("print('one')\n")
    return folder


def profile(place: Path, text: str = PROXY) -> Profile:
    path = place / "acme.toml"
    path.write_text(text)
    return load(path)


def test_an_installed_checkout_runs_as_it_is_edited(cache: Path, sources: Path) -> None:
    install(ACME, sources)
    command = [str(ACME.interpreter), "-m", "acme.gateway"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "one\n"
    (sources / "acme" / "gateway.py").write_text("print('another')\n")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "another\n"
    assert needs.lacking(ACME) is None
    found = needs.found(ACME)
    assert found is not None
    assert (found.checkout, found.python[:2]) == (sources, "3.")


def test_an_install_leaves_the_checkout_as_it_was_and_may_be_repeated(cache: Path, sources: Path) -> None:
    before = {path: path.read_bytes() for path in sources.rglob("*.py")}
    install(ACME, sources)
    install(ACME, sources)
    assert {path: path.read_bytes() for path in sources.rglob("*.py")} == before


def test_what_is_not_there_is_said_with_the_line_that_gets_it(cache: Path, tmp_path: Path) -> None:
    expected = "it is not installed: trackgauge systems install acme --checkout DIR (or TRACKGAUGE_ACME=DIR)"
    assert needs.lacking(ACME) == expected
    with pytest.raises(SystemNotStarted, match="acme did not start: it is not installed: trackgauge systems install"):
        start_proxy(profile(tmp_path), "http://127.0.0.1:1", tmp_path / "records")


@pytest.mark.parametrize(("kind", "start"), [("rebuild", RebuildUnderTest), ("rollout", RunnerUnderTest)])
def test_so_it_is_of_a_command_that_speaks_lines(
    cache: Path, tmp_path: Path, kind: str, start: Callable[[Profile, Path], object]
) -> None:
    file = tmp_path / "lines.toml"
    runner = '[runner]\nproxy = ["acme"]\n' if kind == "rollout" else ""
    file.write_text(
        f'name = "acme"\nkind = "{kind}"\ncapabilities = []\n[install]\npython = "3.11"\npackages = ["acme==1"]\n'
        f'[start]\ncommand = ["{{python}}", "-m", "acme"]\n{runner}'
    )
    with pytest.raises(SystemNotStarted, match="acme did not start: it is not installed: trackgauge systems install"):
        start(load(file), tmp_path)


def test_another_wish_than_what_is_installed_is_no_match(cache: Path, sources: Path) -> None:
    install(ACME, sources)
    assert needs.lacking(replace(ACME, packages=("acme==2",))) == (
        "another version than the profile asks for is installed: trackgauge systems install acme"
    )


def test_a_variable_that_names_another_checkout_is_not_overlooked(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACKGAUGE_ACME", str(sources))
    install(ACME)
    assert needs.lacking(ACME) is None
    monkeypatch.setenv("TRACKGAUGE_ACME", str(tmp_path / "other"))
    assert str(needs.lacking(ACME)).startswith("TRACKGAUGE_ACME names another checkout")


def test_a_checkout_that_is_gone_is_noticed(cache: Path, sources: Path) -> None:
    install(ACME, sources)
    sources.rename(sources.with_name("moved"))
    assert str(needs.lacking(ACME)).startswith("the checkout it was installed with is gone")
    assert needs.found(ACME) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "its sources are not on a package index: name a checkout, --checkout DIR or TRACKGAUGE_ACME"),
        ("empty", r"empty is not the checkout that it needs: there is no acme/gateway\.py in it"),
    ],
)
def test_a_wrong_checkout_is_refused_before_anything_is_made(
    cache: Path, tmp_path: Path, given: str | None, message: str
) -> None:
    begun: list[bool] = []
    with pytest.raises(CannotInstall, match=message):
        install(ACME, None if given is None else tmp_path / given, lambda: begun.append(True))
    assert not ACME.place.exists()
    assert begun == []


def test_a_python_that_nobody_has_is_one_line(cache: Path, sources: Path) -> None:
    with pytest.raises(CannotInstall, match=r"it needs Python 3\.99 or newer with its venv module"):
        install(replace(ACME, python="3.99"), sources)


def test_placeholders_name_what_is_installed(cache: Path, sources: Path, tmp_path: Path) -> None:
    install(ACME, sources)
    filled = profile(tmp_path).fill("{python} {checkout} {venv}", {})
    assert filled == f"{cache}/systems/acme/bin/python {sources} {cache}/systems/acme"


def test_a_profile_without_an_installation_runs_with_our_interpreter() -> None:
    assert profiles.find("reference").fill("{python} {venv}", {}) == f"{sys.executable} {{venv}}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('python = "3.11"', 'python = ">=3.11"', "install.python: expected the oldest version that will do"),
        ('python = "3.11"', 'name = "../acme"', r"install.name: expected a plain folder name, seen '\.\./acme'"),
        ('variable = "TRACKGAUGE_ACME"', "", "install.checkout.variable: is missing; expected a string"),
        ('has = "acme', 'hass = "acme', "install.checkout.has: is missing"),
        (
            '[install.checkout]\nvariable = "TRACKGAUGE_ACME"\nhas = "acme/gateway.py"\npackages = ["acme"]\n',
            "",
            "start.",
        ),
    ],
)
def test_a_mistake_in_what_is_needed_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PROXY
    with pytest.raises(ProfileError, match=rf"acme\.toml: {message}"):
        profile(tmp_path, PROXY.replace(old, new))


def test_a_profile_may_be_like_another_and_say_what_differs(tmp_path: Path) -> None:
    profile(tmp_path)
    path = tmp_path / "twin.toml"
    path.write_text(
        'like = "acme"\nname = "twin"\ncapabilities = ["session-key"]\n[session]\nsession-key = {key = "k-{session}"}\n'
    )
    twin = load(path)
    assert (twin.name, sorted(twin.capabilities), sorted(twin.carriers)) == ("twin", ["session-key"], ["session-key"])
    assert twin.start == load(tmp_path / "acme.toml").start


def test_the_list_says_what_is_there_and_what_to_do_for_the_rest(cache: Path, tmp_path: Path) -> None:
    rows = inventory([profiles.find("reference"), profile(tmp_path)])
    assert [(row.name, row.state) for row in rows] == [("reference", "built in"), ("acme", "not installed")]
    assert "trackgauge systems install acme --checkout DIR" in table(rows)
