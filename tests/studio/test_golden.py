"""The cases that the page's code is held to are those that the scripts write today."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "studio-web" / "test" / "golden"


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    for script in ("scripts/studio_golden.py", "studio-web/test/encoder_golden.py"):
        runpy.run_path(str(ROOT / script))["main"](folder)
    return folder


@pytest.mark.parametrize("name", sorted(file.name for file in GOLDEN.glob("*.safetensors")))
def test_the_committed_case_is_current(written, name):
    committed, now = load_file(GOLDEN / name), load_file(written / name)
    assert committed.keys() == now.keys()
    for key, value in now.items():
        least = 1 if value.dtype == torch.uint8 else 1e-7  # a grey level, which another processor may round otherwise
        torch.testing.assert_close(committed[key], value, rtol=1e-6, atol=least, msg=f"{name}: {key}")


def test_no_case_is_missing(written):
    names = [{file.name for file in folder.glob("*.safetensors")} for folder in (GOLDEN, written)]
    assert names[0] == names[1]
    assert len(names[0]) == 18
