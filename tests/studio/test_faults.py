"""Malformed requests: 4xx each, no traceback, nothing on the disk, and the studio lives on.

A few hundred here; ``python -m benchmarks.studio --faults 10000`` sends as many as you like.
"""

from __future__ import annotations

import itertools

import pytest
from benchmarks.studio_faults import attacked_studio, hand_made, schema_faults
from benchmarks.studio_hostile import chance_faults, hostile_paths, hostile_uploads


@pytest.fixture(scope="module")
def attacked(small_run):
    with attacked_studio(str(small_run)) as studio:
        yield studio


def test_hostile_requests_made_by_hand(attacked):
    attacker, model_id, image_shape, _ = attacked
    count = sum(1 for _ in map(attacker.send, hand_made(model_id, image_shape)))
    assert count > 200
    assert attacker.problems == []
    assert attacker.watch.seen == []
    assert attacker.is_alive(model_id)


def test_requests_that_break_the_openapi_description(attacked):
    attacker, model_id, _, app = attacked
    assert schema_faults(app, attacker, model_id, 70) >= 60
    assert attacker.problems == []
    assert attacker.watch.seen == []
    assert attacker.is_alive(model_id)


def test_requests_that_are_wrong_by_construction(attacked):
    attacker, model_id, image_shape, _ = attacked
    for fault in itertools.islice(chance_faults(model_id, image_shape, seed=1), 300):
        attacker.send(fault)
    assert attacker.problems == []
    assert attacker.watch.seen == []
    assert attacker.is_alive(model_id)


def test_the_watch_would_see_a_file(attacked, tmp_path):
    attacker, *_ = attacked
    with attacker.watch.looking():
        (tmp_path / "written").write_text("x")
        (tmp_path / "folder").mkdir()
    assert len(attacker.watch.seen) == 2
    attacker.watch.seen.clear()


def test_the_judge_would_see_a_fault(attacked):
    attacker, *_ = attacked
    attacker.judge("accepted", 200, '{"error": ""}')
    attacker.judge("failed", 500, 'Traceback (most recent call last): File "x.py"')
    assert len(attacker.problems) == 3
    attacker.problems.clear()


def test_refusals_say_what_to_do(client):
    for fault in itertools.chain(hostile_paths("small"), hostile_uploads("small")):
        answer = client.request(fault.method, fault.path, content=fault.body[:9_000_000], headers=fault.headers)
        assert set(answer.json()) == {"error"}
        assert 15 < len(answer.json()["error"]) < 1100
