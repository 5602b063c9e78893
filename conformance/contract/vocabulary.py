"""Closed sets of the contract. A value outside of its set is a fault, never a new member."""

from enum import StrEnum


class Level(StrEnum):
    """How binding a requirement is: MUST is safety, SHOULD is salvage and manners, MAY is told only."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Verdict(StrEnum):
    """What became of one requirement in one scenario. Only ``check`` can give ``fail``."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    KNOWN = "known"
    STALE = "stale"


class SystemKind(StrEnum):
    """What a requirement speaks of, and what a profile describes."""

    PROXY = "proxy"
    REBUILD = "rebuild"
    ROLLOUT = "rollout"
    SERVER = "server"


class Outcome(StrEnum):
    """How much of a session became a trajectory."""

    CLEAN = "clean"
    PARTIAL = "partial"
    FAILED = "failed"


class ExcludedWhy(StrEnum):
    """Why a record stands in no trajectory."""

    ORPHAN = "orphan"
    SIDE_CALL = "side_call"
    INVALID = "invalid"


class ReasonCode(StrEnum):
    """Why a rollout or trajectory is not clean. The free text beside it is for people."""

    HISTORY_REWRITTEN = "history_rewritten"
    HISTORY_DISAGREES = "history_disagrees"
    TOKENS_DISAGREE = "tokens_disagree"
    UNCAPTURED_TURN = "uncaptured_turn"
    MODEL_CHANGED = "model_changed"
    INVALID_RECORD = "invalid_record"
    UNRESOLVED_SIBLINGS = "unresolved_siblings"
    FORK = "fork"
    AMBIGUOUS_MAIN = "ambiguous_main"
    SEVERAL_CHAINS = "several_chains"
    SEVERAL_ROOTS = "several_roots"
    NO_ROOT = "no_root"
    RECORDS_LOST = "records_lost"
    NO_VALID_RECORD = "no_valid_record"
    NO_RECORDS = "no_records"


class Part(StrEnum):
    """What of a session a caller may ask for apart, instead of having all of it withheld."""

    SEGMENTS = "segments"
    BRANCHES = "branches"


class NoteCode(StrEnum):
    """Something worth telling about a record that stands in a trajectory.

    ``segment`` and ``branch`` name the first record of a trajectory that was split off because the caller asked for it.
    """

    REWRITTEN = "rewritten"
    TOOLS_CHANGED = "tools_changed"
    CUT_GENERATION = "cut_generation"
    UNCAPTURED_TURN = "uncaptured_turn"
    TWIN = "twin"
    SEGMENT = "segment"
    BRANCH = "branch"
