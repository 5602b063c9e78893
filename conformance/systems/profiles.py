"""The profiles that ship and those of users: found by name or path, and chosen for a run."""

from pathlib import Path

from conformance.contract.vocabulary import SystemKind
from conformance.systems.profile import Profile
from conformance.systems.profile_reading import load
from conformance.systems.tables import ProfileError

PROFILES = Path(__file__).parent / "profiles"
DEFAULT_NAMES = ("reference", "reference-rebuild", "reference-rollout")


def names() -> list[str]:
    """Of the profiles that ship."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def find(name_or_path: str) -> Profile:
    """A profile that ships, by name, or one of the user's, by path. Raises :class:`ProfileError`."""
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return load(path)
    if name_or_path not in names():
        raise ProfileError(name_or_path, "", f"no such system; expected a path or one of {', '.join(names())}")
    return load(PROFILES / f"{name_or_path}.toml")


def choose(asked: list[str]) -> dict[SystemKind, Profile]:
    """The systems of one run, at most one a kind; the references if none is asked for."""
    chosen: dict[SystemKind, Profile] = {}
    for name in asked or DEFAULT_NAMES:
        profile = find(name)
        if profile.kind in chosen:
            other = chosen[profile.kind].name
            raise ProfileError(name, "kind", f"a second {profile.kind} beside {other}; give one system of each kind")
        chosen[profile.kind] = profile
    return chosen
