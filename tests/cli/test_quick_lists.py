"""Lists answer without torch, and what they state without building anything is true."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
import torch

import torchcaps
from torchcaps.models import create_model, list_models
from torchcaps.models.catalog import NETWORKS

QUICK = ("--version", "--help", "models list", "data list", "train --help")
PROGRAM = """
import sys
from torchcaps.cli.app import main
for arguments in sys.argv[1:]:
    assert main(arguments.split()) == 0
    assert "torch" not in sys.modules, f"{arguments} has imported torch"
"""


def test_lists_and_help_do_not_import_torch():
    done = subprocess.run([sys.executable, "-c", PROGRAM, *QUICK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_list_of_networks_states_what_they_are():
    assert [network.name for network in NETWORKS] == list_models()
    for network in NETWORKS:
        with torch.device("meta"):
            model = create_model(network.name)
        assert model.image_shape == network.image_shape
        assert model.num_classes == network.num_classes
        assert sum(parameter.numel() for parameter in model.parameters()) == network.parameters
        assert (type(model).__doc__ or "").splitlines()[0] == network.what


@pytest.mark.parametrize("name", ["torchcaps", "torchcaps.data", "torchcaps.models"])
def test_every_public_name_is_found_where_it_is_said_to_be(name):
    package = importlib.import_module(name)
    assert dir(package) == sorted(package.__all__)
    for public in package.__all__:
        assert getattr(package, public) is not None
    for public, home in package._HOME.items():
        assert public in package.__all__
        assert importlib.util.find_spec(f"{name}.{public}") is None, "a module of this name would take its place"
        assert hasattr(importlib.import_module(f"{name}.{home}"), public)


def test_an_unknown_name_is_an_attribute_error_and_modules_are_found():
    with pytest.raises(AttributeError, match=r"module 'torchcaps.data' has no attribute 'nonsense'"):
        _ = torchcaps.data.nonsense
    assert torchcaps.data.multimnist.MultiMNIST is torchcaps.data.MultiMNIST
