"""Every test starts from the same seed, and memory that nobody wrote is NaN."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores

# A busy machine is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


# The studio is optional, and what its tests share imports it: on a machine without it the others can still be run.
collect_ignore = [] if find_spec("starlette") else ["studio"]


def pytest_report_header() -> list[str]:
    return ["tests/studio is left out: install the extra studio"] if collect_ignore else []


@pytest.fixture(autouse=True)
def _seeded_and_poisoned():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True  # torch.empty gives NaN
    yield
    torch.use_deterministic_algorithms(False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_gpu = pytest.mark.skip(reason="needs a CUDA device, and none is here")
    for item in items:
        if "gpu" in item.keywords and not torch.cuda.is_available():
            item.add_marker(no_gpu)
