"""Which examples the seeds of a recipe get wrong: counted again from the weights, refused where it means nothing."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch

import torchcaps
from tiny_studies import options, tiny_study
from torchcaps.cli.app import main
from torchcaps.data import load
from torchcaps.errors import TorchcapsError
from torchcaps.train.studies import find_mistakes, run_study

SEEDS = 3


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """Three seeds of a network that is trained for three steps, and so is often wrong."""
    out = tmp_path_factory.mktemp("study")
    run_study(tiny_study(split="test"), options(out, seeds=SEEDS), lambda text: None)
    return out / "plain"


def edited(cell, tmp_path, **facts):
    """A copy of two seeds, the second with other facts in its result."""
    for seed in (0, 1):
        folder = tmp_path / "cell" / f"seed{seed}"
        folder.mkdir(parents=True)
        for name in ("recipe.toml", "result.json"):
            (folder / name).write_text((cell / f"seed{seed}" / name).read_text())
    found = json.loads((folder / "result.json").read_text()) | facts
    (folder / "result.json").write_text(json.dumps(found))
    return tmp_path / "cell"


def test_they_are_those_of_the_weights(cell):
    found = find_mistakes(cell)
    test = load("mnist-sample").test
    times: Counter[int] = Counter()
    for seed in range(SEEDS):
        model = torchcaps.from_pretrained(cell / f"seed{seed}" / "final").eval()
        with torch.no_grad():
            named = model(test.images.float() / 255).scores.argmax(1)
        times.update((named != test.labels).nonzero()[:, 0].tolist())
    assert dict(zip(found.positions, found.times, strict=True)) == times
    assert (found.data, found.split, found.examples) == ("mnist-sample", "test", 500)
    assert sum(found.errors) == times.total()
    assert found.of_all_seeds == sum(count == SEEDS for count in times.values()) > 0
    order = [(-count, position) for position, count in zip(found.positions, found.times, strict=True)]
    assert order == sorted(order)
    chosen = torch.tensor(found.positions)
    assert torch.equal(found.images, test.images[chosen])
    assert found.names == tuple(str(label) for label in test.labels[chosen].tolist())


def test_they_are_drawn(cell, tmp_path, capsys):
    file = tmp_path / "wrong.png"
    assert main(["mistakes", str(cell), "--examples", "7", "--columns", "3", "--out", str(file)]) == 0
    found = find_mistakes(cell)
    out = capsys.readouterr().out
    assert f"{', '.join(map(str, found.errors))} of 500 wrong" in out
    assert f"at least one of {SEEDS} seeds, {found.of_all_seeds} in all of them" in out
    assert file.read_bytes().startswith(b"\x89PNG")


def test_nothing_wrong_is_nothing_to_draw(cell, tmp_path, capsys):
    none = edited(cell, tmp_path, errors=0, wrong="")
    (none / "seed0" / "result.json").write_text((none / "seed1" / "result.json").read_text())
    assert main(["mistakes", str(none), "--out", str(tmp_path / "wrong.png")]) == 0
    assert "nothing to draw" in capsys.readouterr().out
    assert not (tmp_path / "wrong.png").exists()


def test_what_cannot_be_compared_is_refused(cell, tmp_path):
    with pytest.raises(TorchcapsError, match="holds no finished seeds"):
        find_mistakes(tmp_path / "typo")
    old = edited(cell, tmp_path / "old", wrong=None)
    with pytest.raises(TorchcapsError, match=r"seed 1 in .* does not list its wrong examples"):
        find_mistakes(old)
    ensemble = edited(cell, tmp_path / "ensemble")
    for file in ensemble.glob("seed*/recipe.toml"):
        file.unlink()
    with pytest.raises(TorchcapsError, match="have no recipe"):
        find_mistakes(ensemble)
    other = edited(cell, tmp_path / "other", split="validation")
    with pytest.raises(TorchcapsError, match="measured on different examples"):
        find_mistakes(other)
    grown = edited(cell, tmp_path / "grown", examples=501)
    (grown / "seed0" / "result.json").write_text((grown / "seed1" / "result.json").read_text())
    with pytest.raises(TorchcapsError, match="measured on 501 examples of mnist-sample, test, but here"):
        find_mistakes(grown)


def test_seeds_that_hold_other_examples_out_are_refused(tmp_path):
    study = replace(tiny_study(), folds=True)
    run_study(study, options(tmp_path, seeds=2), lambda text: None)
    with pytest.raises(TorchcapsError, match="measured on different examples"):
        find_mistakes(tmp_path / "plain")
