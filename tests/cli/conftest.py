"""What the tests of the commands share: a working folder with runs and pictures, and a look at what is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from published_files import picture_bytes
from small_runs import shared_run
from torchcaps.data import sample_digits
from torchcaps.eval import figures
from torchcaps.eval.figures import reconstruction_figure


@pytest.fixture
def place(tmp_path, tmp_path_factory, monkeypatch):
    """A working folder with the runs and pictures that the examples name."""
    root = tmp_path_factory.getbasetemp()
    (tmp_path / "runs").mkdir()
    for name, kind in (("demo-seed0", "small"), ("demo-seed1", "other"), ("pairs", "pairs")):
        (tmp_path / "runs" / name).symlink_to(shared_run(root, kind))
    (tmp_path / "pictures").mkdir()
    split = sample_digits("test")
    for name, label in (("five", 5), ("seven", 7)):
        pixels = split.images[split.labels == label][0, 0].numpy()
        (tmp_path / "pictures" / f"{name}.png").write_bytes(picture_bytes(pixels.repeat(3, axis=0)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("TORCHCAPS_DATA", raising=False)
    return tmp_path


@pytest.fixture
def shown_reconstructions(monkeypatch) -> dict[str, Any]:
    """What is given to be drawn from now on."""
    shown = {}

    def note(images, drawn, names, title):
        shown.update(images=images, drawn=drawn, names=names)
        return reconstruction_figure(images, drawn, names, title)

    monkeypatch.setattr(figures, "reconstruction_figure", note)
    return shown
