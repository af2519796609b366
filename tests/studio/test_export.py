"""The site of files: complete, readable by the safetensors library, and equal to what the server says."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from torchcaps import ops
from torchcaps.data import sample_digits
from torchcaps.errors import TorchcapsError
from torchcaps.eval import load_model
from torchcaps.studio import Catalogue, export_site


@pytest.fixture(scope="module")
def site(small_run, cnn_folder, colour_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "site"
    lines: list[str] = []
    size = export_site(Catalogue([small_run, cnn_folder, colour_folder]), folder, count=12, say=lines.append)
    assert size == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert any("left out colour" in line for line in lines)
    return folder


def test_facts(site):
    assert (site / "index.html").is_file()
    config = json.loads((site / "config.json").read_text())
    assert config["static"] is True
    assert len(config["examples"]) == 12
    models = json.loads((site / "data" / "models.json").read_text())
    assert [model["id"] for model in models] == ["small", "cnn"]
    assert models[0]["checkpoints"] == []
    assert models[0]["test_error"] is not None
    examples = json.loads((site / "data" / "examples.json").read_text())
    assert examples["indices"] == config["examples"]
    assert {model["examples"] for model in models} == {examples["source"]}
    assert sorted(label for labels in examples["labels"] for label in labels) == sorted([*range(10), 0, 1])


def test_a_network_of_other_things_in_the_same_shape_is_left_out(tmp_path):
    lines: list[str] = []
    export_site(Catalogue(["cnn-mnist", "cnn-fashion"]), tmp_path / "site", count=1, say=lines.append)
    assert [model["id"] for model in json.loads((tmp_path / "site/data/models.json").read_text())] == ["cnn-mnist"]
    assert "left out cnn-fashion: it takes other pictures than cnn-mnist" in lines


def test_numbers_of_each_example(site, small_run):
    model = load_model(small_run)
    index = json.loads((site / "config.json").read_text())["examples"][3]
    image = load_file(site / f"data/examples/{index}.safetensors")["image"].float()[None] / 255
    home = site / "data" / "models" / "small" / "examples" / str(index)
    with torch.no_grad():
        out = model(image)
    torch.testing.assert_close(load_file(home / "forward.safetensors")["lengths"], out.lengths, rtol=1e-5, atol=1e-6)
    votes = load_file(home / "votes.safetensors")
    routed = ops.dynamic_routing(votes["votes"].float()[None], 3, votes["bias"])
    torch.testing.assert_close(routed, out.capsules, rtol=0, atol=2e-3)  # votes in half precision
    assert load_file(home / "affine-shear.safetensors")["lengths"].shape == (41, 10)
    assert (site / "data/models/cnn/examples" / str(index) / "affine-rotate.safetensors").is_file()


def test_the_encoder_can_be_run_from_its_file(site, small_run):
    """What a page must do to read a drawing without a server."""
    model = load_model(small_run)
    weights = {name: value.float() for name, value in load_file(site / "data/models/small/encoder.safetensors").items()}
    image = torch.rand(1, 1, 28, 28)
    x = torch.nn.functional.conv2d(image, weights["conv.0.weight"], weights["conv.0.bias"]).relu()
    maps = torch.nn.functional.conv2d(x, weights["primary.weight"], None, stride=2) / 4  # 1 / types, in the metadata
    maps = maps + weights["primary.bias"][:, None, None]
    lower = ops.squash(maps[0].unflatten(0, (4, 8)).permute(2, 3, 0, 1).reshape(1, -1, 8))
    capsules = ops.capsule_linear(lower, weights["classes.weight"], 3, weights["classes.bias"])
    with torch.no_grad():
        torch.testing.assert_close(ops.capsule_lengths(capsules), model(image).lengths, rtol=0, atol=5e-3)


def test_a_folder_with_other_things_is_left_alone(tmp_path, small_run):
    for name in ("thesis.txt", "config.json"):
        (tmp_path / name).write_bytes(b"\xffyears of work")
        with pytest.raises(TorchcapsError, match="other files"):
            export_site(Catalogue([small_run]), tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.json", "thesis.txt"]


def test_a_network_of_pairs_has_single_digits_to_lay_over_each_other(pairs_run, tmp_path):
    export_site(Catalogue([pairs_run]), tmp_path / "site", count=4)
    data = tmp_path / "site" / "data"
    pairs, singles = (json.loads((data / f"{name}.json").read_text()) for name in ("examples", "singles"))
    assert {len(labels) for labels in pairs["labels"]} == {2}
    assert (singles["source"], singles["image_shape"], len(singles["indices"])) == ("mnist-sample", [1, 28, 28], 4)
    for index, (label,) in zip(singles["indices"], singles["labels"], strict=True):
        digits = sample_digits("test")
        assert torch.equal(load_file(data / f"singles/{index}.safetensors")["image"], digits.images[index])
        assert int(digits.labels[index]) == label


def test_an_export_takes_the_place_of_the_one_before(cnn_folder, tmp_path):
    export_site(Catalogue(["cnn-mnist"]), tmp_path / "site", count=2)
    export_site(Catalogue([cnn_folder]), tmp_path / "site", count=2)
    assert [folder.name for folder in (tmp_path / "site/data/models").iterdir()] == ["cnn"]
