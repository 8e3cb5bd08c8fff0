"""A share of the kept trainings runs again and is compared."""

import pytest

from sidequest.errors import SettingsError, WorldError
from sidequest.learning.meter import Meter
from sidequest.search import recheck
from sidequest.search.trials import TrialCache, TrialResult


@pytest.fixture(autouse=True)
def nothing_confirmed(monkeypatch):
    monkeypatch.setattr(recheck, "_confirmed", set())
    monkeypatch.setenv(recheck.VARIABLE, "")


def result(score):
    return TrialResult(score, [{"phase": 0, "batches": 1, "score": score}], Meter(trials=1))


def test_what_comes_out_the_same_is_kept_and_what_does_not_is_told(tmp_path, monkeypatch):
    cache = TrialCache(tmp_path)
    cache.put("a" * 64, result(0.5))
    assert cache.get("a" * 64) is not None
    recheck.ask_for(1.0)
    assert cache.get("a" * 64) is None
    with pytest.raises(WorldError, match=r"came out otherwise: kept .*0\.5.* now .*0\.75"):
        cache.put("a" * 64, result(0.75))
    monkeypatch.setattr(recheck, "_confirmed", set())
    cache.put("a" * 64, result(0.5))
    assert cache.get("a" * 64) is not None  # once in a process is enough


def test_about_the_share_is_due_and_workers_draw_alike():
    keys = [f"{number:064x}" for number in range(4000)]
    recheck.ask_for(0.1)
    due = [key for key in keys if recheck.is_due(key)]
    assert 320 <= len(due) <= 480  # 4 deviations: a false alarm in 16,000 runs
    assert due == [key for key in keys if recheck.is_due(key)]
    recheck.ask_for(0.1)
    assert due != [key for key in keys if recheck.is_due(key)]
    recheck.ask_for(0.0)
    assert not any(map(recheck.is_due, keys))


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_from_0_to_1(share):
    with pytest.raises(SettingsError, match="--recheck: a share from 0 to 1"):
        recheck.ask_for(share)
