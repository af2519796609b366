"""Runs that several tests look at and none changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_runs import shared_run


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Path:
    return shared_run(tmp_path_factory.getbasetemp(), "small")


@pytest.fixture(scope="session")
def pairs_run(tmp_path_factory) -> Path:
    return shared_run(tmp_path_factory.getbasetemp(), "pairs")
