"""A loss that changes in the course of training: told before each step, by address, so that a fixed graph hears it."""

from __future__ import annotations

import pytest
import torch

import torchcaps
from torchcaps.nn import SpreadLoss
from torchcaps.train import fit, load_recipe
from torchcaps.train.objective import Objective
from torchcaps.train.step import TrainingStep

SMALL = {"A": 4, "B": 2, "C": 2, "D": 2}


def small_objective() -> Objective:
    return Objective(torchcaps.create_model("matrix-capsules", **SMALL).train())


def test_each_step_sees_the_margin_of_its_place(tmp_path, monkeypatch):
    margins: list[float] = []
    step = TrainingStep.__call__

    def watched(self: TrainingStep) -> None:
        margins.append(self.objective.loss.margin_now.item())
        step(self)

    monkeypatch.setattr(TrainingStep, "__call__", watched)
    changes = [f"model.{name}={size}" for name, size in SMALL.items()]
    changes += ["data.source=mnist-sample", "training.steps=4", "training.batch_size=10", "log.tensorboard=off"]
    fit(load_recipe("matrix-capsules", changes), run_dir=tmp_path, device="cpu", progress=False)
    assert margins == pytest.approx([0.2, 0.375, 0.55, 0.725])


def test_a_compiled_loss_is_not_compiled_again_for_another_margin():
    """What holds for the traced graph holds for its capture: the margin is an input of it and not a constant."""
    graphs: list[object] = []

    def keep(graph: torch.fx.GraphModule, inputs: object) -> object:
        graphs.append(graph)
        return graph

    loss = SpreadLoss(0.9, start=0.2)
    compiled = torch.compile(loss, backend=keep, dynamic=False)
    lengths, labels = torch.rand(3, 10), torch.tensor([1, 2, 3])
    totals = []
    for progress in (0.0, 1.0):
        loss.set_progress(progress)
        totals.append(compiled(lengths, labels).total)
        torch.testing.assert_close(totals[-1], loss(lengths, labels).total)
    assert totals[0] < totals[1]
    assert len(graphs) == 1


def test_the_margin_lies_where_the_network_is_told_to_lie():
    objective = small_objective().to("meta")
    assert isinstance(objective.loss, SpreadLoss)
    assert objective.loss.margin_now.device.type == "meta"


def test_other_losses_do_not_listen():
    for name in ("capsnet", "small-cnn"):
        with torch.device("meta"):
            objective = Objective(torchcaps.create_model(name))
        objective.set_progress(0.3)
        assert not list(objective.loss.buffers())
