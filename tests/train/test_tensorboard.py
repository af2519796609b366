"""TensorBoard's events: what was promised is in them; without TensorBoard training goes on."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
import torch

import torchcaps
from torchcaps.errors import TorchcapsError
from torchcaps.train.tensorboard import TWEAKS, TensorBoardLog, dimension_grid
from training_runs import losses, train_tiny


def test_events_hold_curves_pictures_histograms_and_the_graph(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train_tiny(tmp_path, "training.steps=3", "log.tensorboard=on", "data.validation=0.1", "model.iterations=2")
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    tags = events.Tags()
    scalars = {"train/loss", "train/margin", "train/reconstruction", "train/error", "train/lr", "validation/error"}
    assert scalars | {"coupling/entropy-1", "coupling/entropy-2"} <= set(tags["scalars"])
    assert {"pictures/dimensions", "pictures/input", "pictures/reconstruction"} <= set(tags["images"])
    assert set(tags["histograms"]) == {"coupling/iteration-1", "coupling/iteration-2"}
    assert tags["graph"]
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx(losses(run), rel=1e-6)
    # the first iteration shares every vote equally
    assert events.Scalars("coupling/entropy-1")[0].value == pytest.approx(torch.tensor(10.0).log().item(), rel=1e-4)


def test_pairs_are_shown_too(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pairs = train_tiny(
        tmp_path / "pairs", "training.steps=1", "log.tensorboard=on", "data.task=multimnist", "data.augment=[]"
    )
    tags = EventAccumulator(str(pairs / "tensorboard")).Reload().Tags()
    assert "pictures/reconstruction" in tags["images"]


def test_pictures_of_any_number_of_classes_are_shown_too(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    labels = np.random.default_rng(0).integers(0, 2, (30, 3))
    images = np.zeros((30, 28, 28), np.uint8)
    np.savez(tmp_path / "set.npz", images=images, labels=labels)
    source = f"data.source=npz:{tmp_path / 'set.npz'}"
    run = train_tiny(tmp_path / "run", "training.steps=1", "log.tensorboard=on", source)
    tags = EventAccumulator(str(run / "tensorboard")).Reload().Tags()
    assert {"pictures/dimensions", "pictures/reconstruction"} <= set(tags["images"])


@pytest.mark.parametrize("name", torchcaps.list_models())
def test_every_network_has_a_graph(name, tmp_path, recwarn):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from torch.utils.tensorboard import SummaryWriter

    model = torchcaps.create_model(name)
    with SummaryWriter(str(tmp_path)) as writer:
        TensorBoardLog(writer).show_graph(model, torch.rand(1, *model.image_shape))
    assert not [warning for warning in recwarn if "shows no graph" in str(warning.message)]


def test_a_row_of_the_dimension_grid_moves_one_dimension():
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2).eval()
    capsules = torch.rand(1, 10, 16) * 0.2
    with torch.no_grad():
        grid = dimension_grid(model, capsules, torch.tensor([4]))
        moved = capsules.clone()
        moved[0, 4, 7] += TWEAKS[2]
        expected = model.reconstruct(moved, torch.tensor([4]))[0]
    assert grid.shape == (1, 16 * 28, 11 * 28)
    torch.testing.assert_close(grid[:, 7 * 28 : 8 * 28, 2 * 28 : 3 * 28], expected)


def test_without_tensorboard_training_goes_on_or_says_how_to_get_it(tmp_path, monkeypatch):
    real_import = builtins.__import__

    def without(name, *details):
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real_import(name, *details)

    monkeypatch.setattr(builtins, "__import__", without)
    run = train_tiny(tmp_path / "auto", "training.steps=1", "log.tensorboard=auto")
    assert not (run / "tensorboard").exists()
    with pytest.raises(TorchcapsError, match=r"pip install 'torchcaps\[tensorboard\]'"):
        train_tiny(tmp_path / "on", "training.steps=1", "log.tensorboard=on")
