"""A studio with a small trained run and a fresh CNN, asked without a network in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient
from torch import Tensor

import torchcaps
from small_runs import shared_run
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors

ADDRESS = "http://127.0.0.1"


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Path:
    return shared_run(tmp_path_factory.getbasetemp(), "small")


@pytest.fixture(scope="session")
def pairs_run(tmp_path_factory) -> Path:
    return shared_run(tmp_path_factory.getbasetemp(), "pairs")


@pytest.fixture(scope="session")
def cnn_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "cnn"
    torch.manual_seed(0)
    torchcaps.create_model("small-cnn", channels=4, hidden=16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def colour_folder(tmp_path_factory) -> Path:
    """Colour, not square, five classes, no bias, leaky, a convolutional decoder."""
    folder = tmp_path_factory.mktemp("models") / "colour"
    torch.manual_seed(0)
    torchcaps.create_model(
        "capsnet",
        image_shape=(3, 20, 24),
        num_classes=5,
        preset="paper",
        conv_channels=8,
        primary_types=2,
        capsule_dim=6,
        leaky=True,
        decoder="conv",
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def catalogue(small_run, cnn_folder, colour_folder, pairs_run) -> Catalogue:
    return Catalogue([small_run, cnn_folder, colour_folder, pairs_run])


@pytest.fixture(scope="session")
def client(catalogue) -> Iterator[TestClient]:
    with TestClient(create_app(catalogue), base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def ask(client) -> Callable[..., dict[str, Tensor]]:
    """GET a path, or POST tensors to it, and read the tensors of the answer."""

    def ask(path: str, **tensors: Tensor) -> dict[str, Tensor]:
        if tensors:
            answer = client.post(path, content=pack_tensors(tensors), headers={"content-type": MEDIA_TYPE})
        else:
            answer = client.get(path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == MEDIA_TYPE
        return unpack_tensors(answer.content)

    return ask
