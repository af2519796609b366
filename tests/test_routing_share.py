"""Other numbers of iterations with the same weights: R = 1 is no routing, and the network's own R is the network."""

from __future__ import annotations

import csv
import math

import pytest
import torch
from benchmarks.routing_share import ITERATIONS, main, with_iterations

from small_runs import shared_run
from torchcaps.eval import load_model


def test_the_networks_own_number_gives_the_network(tmp_path_factory):
    model = load_model(shared_run(tmp_path_factory.getbasetemp(), "small")).eval()
    images = torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(with_iterations(model, 3)(images).capsules, model(images).capsules)
        assert not torch.allclose(with_iterations(model, 1)(images).capsules, model(images).capsules)


def test_every_number_is_measured(tmp_path, tmp_path_factory, capsys):
    run = shared_run(tmp_path_factory.getbasetemp(), "small")
    assert main([str(run), "--csv", str(tmp_path / "deep" / "share.csv")]) == 0
    with (tmp_path / "deep" / "share.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["iterations"]) for row in rows] == list(ITERATIONS)
    assert float(rows[0]["entropy"]) == pytest.approx(math.log(10), abs=1e-12)  # one iteration decides nothing
    assert float(rows[-1]["entropy"]) < math.log(10) - 1e-4
    assert {row["examples"] for row in rows} == {"500"}
    assert capsys.readouterr().out.count("Share(") == len(ITERATIONS)
