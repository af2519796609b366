"""A copied program runs as it is and gives the numbers of the screen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from torchcaps.data import load, sample_digits
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.affine import transform
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors

EXACT = dict(rtol=1e-5, atol=1e-6)


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "snippet", "exec"), names)
    return names


def program(client, path: str) -> dict[str, Any]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return run(answer.text)


def test_look(client, ask, capsys):
    names = program(client, "/api/models/small/python?index=12")
    shown = ask("/api/models/small/forward", image=sample_digits("test").images[12])
    torch.testing.assert_close(names["out"].lengths, shown["lengths"], **EXACT)
    torch.testing.assert_close(names["picture"], shown["reconstruction"], **EXACT)
    assert "tensor" in capsys.readouterr().out


def test_look_with_a_cnn(client, ask):
    names = program(client, "/api/models/cnn/python?index=12")
    shown = ask("/api/models/cnn/forward", image=sample_digits("test").images[12])
    torch.testing.assert_close(names["out"].probabilities, shown["probabilities"], **EXACT)


def test_shipped_weights_and_an_embedded_picture_need_no_file_of_ones_own():
    with TestClient(create_app(Catalogue(["capsnet-fashion"])), base_url="http://127.0.0.1") as client:
        names = program(client, "/api/models/capsnet-fashion/python?index=12")
    assert torch.equal(names["pixels"][0], load("fashion-sample").test.images[12])
    assert names["out"].lengths.shape == (1, 10)


def test_look_at_a_checkpoint(client, ask):
    names = program(client, "/api/models/small@40/python?index=3")
    shown = ask("/api/models/small@40/forward", image=sample_digits("test").images[3])
    torch.testing.assert_close(names["out"].lengths, shown["lengths"], **EXACT)


def test_dimensions(client, ask):
    vector = torch.linspace(-0.3, 0.3, 16)
    text = ",".join(f"{value:.6f}" for value in vector)
    names = program(client, f"/api/models/small/python?kind=dimensions&index=1&capsule=4&vector={text}")
    capsules = torch.zeros(1, 10, 16)
    capsules[0, 4] = vector
    pictures = ask("/api/models/small/decode", capsules=capsules)["pictures"]
    torch.testing.assert_close(names["picture"], pictures, rtol=1e-4, atol=1e-5)  # six digits in the address


@pytest.mark.parametrize("iterations", [1, 5])
def test_routing(client, ask, iterations):
    names = program(client, f"/api/models/small/python?kind=routing&index=7&iterations={iterations}")
    shown = ask(f"/api/models/small/trace?iterations={iterations}", image=sample_digits("test").images[7])
    torch.testing.assert_close(names["trace"].coefficients[:, 0], shown["coefficients"], **EXACT)


def test_overlap_of_two_digits(client, ask):
    composite = torch.nn.functional.pad(sample_digits("test").images[[3, 70]], (4,) * 4).amax(0)
    answer = client.post("/api/models/pairs/python?kind=overlap", content=pack_tensors({"image": composite}))
    names = run(answer.text)
    assert torch.equal(names["pixels"][0], composite)
    shown = ask("/api/models/pairs/forward", image=composite)
    torch.testing.assert_close(names["out"].lengths, shown["lengths"], **EXACT)
    assert len(names["pictures"]) == 2


def test_affine_of_a_drawn_picture(client, ask):
    drawn = (torch.rand(1, 28, 28) * 255).byte()
    answer = client.post(
        "/api/models/small/python?kind=affine&transform=rotate&value=45",
        content=pack_tensors({"image": drawn}),
        headers={"content-type": MEDIA_TYPE},
    )
    names = run(answer.text)
    turned = transform(drawn, "rotate", torch.tensor([45.0]))
    shown = ask("/api/models/small/forward", images=turned)
    torch.testing.assert_close(names["out"].lengths, shown["lengths"], **EXACT)


def test_what_a_network_cannot_show_is_refused(client):
    for path in ("cnn/python?kind=routing", "cnn/python?kind=overlap", "small/python?kind=dimensions&vector=1"):
        assert client.get(f"/api/models/{path}").status_code in (400, 404)
