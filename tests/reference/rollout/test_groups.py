"""What is left of groups when sessions break."""

import math

import pytest

from conformance.reference.rollout.groups import (
    Setting,
    all_hold,
    enough_hold,
    most_lost,
    play,
    report,
    sessions_for,
)

pytestmark = pytest.mark.unit


def test_sixteen_independent_sessions_lose_48_percent_of_groups() -> None:
    assert 1 - all_hold(Setting(0.04)) == pytest.approx(0.4796, abs=1e-4)


def test_the_report_implies_more_than_five_sessions_a_rollout() -> None:
    sessions = sessions_for(0.04, 16, 0.97)
    assert sessions == pytest.approx(5.37, abs=0.01)
    assert 1 - all_hold(Setting(0.04, sessions)) == pytest.approx(0.97)


def test_no_way_to_spread_single_sessions_gives_the_reported_loss() -> None:
    assert most_lost(Setting(0.04)) == pytest.approx(0.64)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_the_probabilities_of_all_numbers_of_breaks_add_up(correlation: float) -> None:
    from conformance.reference.rollout.groups import _exactly

    setting = Setting(0.1, 2, 16, correlation)
    assert math.fsum(_exactly(setting, broken) for broken in range(17)) == pytest.approx(1)


def test_breaks_that_come_together_lose_fewer_groups() -> None:
    assert all_hold(Setting(0.04, 1, 16, 0.2)) > all_hold(Setting(0.04))


@pytest.mark.parametrize("setting", [Setting(0.04, 5.4), Setting(0.3, 1, 4, 0.5), Setting(0, 1), Setting(1, 1)])
def test_what_is_played_is_near_what_is_computed(setting: Setting) -> None:
    played = play(setting, 1500)
    assert played.discard == pytest.approx(all_hold(setting), abs=0.05)
    assert played.withhold == pytest.approx(enough_hold(setting), abs=0.05)
    assert played.members == pytest.approx(1 - setting.rollout_break_rate, abs=0.05)
    assert played.retries == 0


def test_the_report_tells_both_readings() -> None:
    told = report(Setting(0.04), 20)
    assert "48% would be lost" in told
    assert "takes 5.4 of them" in told
