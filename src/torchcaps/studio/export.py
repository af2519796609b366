"""The studio as files: a site that any file server can show, with no Python behind it.

The files below ``data/`` are what the server would have answered, under the same names; ``docs/studio.md`` lists them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcaps._version import __version__
from torchcaps.data.window import to_unit_float
from torchcaps.errors import TorchcapsError
from torchcaps.eval.output import write_file
from torchcaps.models import CapsNet
from torchcaps.nn import ConvolutionStem
from torchcaps.studio import looking
from torchcaps.studio.affine import KINDS
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.example_sets import ExampleSet, sample_set
from torchcaps.studio.network import Network
from torchcaps.studio.routes.examples import example_metadata
from torchcaps.studio.schemas import Config, ExampleFacts, ModelFacts
from torchcaps.studio.static_files import page_files
from torchcaps.studio.tensors import pack_tensors

__all__ = ["EXAMPLES", "export_site"]

EXAMPLES = 20


@torch.inference_mode()
def export_site(
    catalogue: Catalogue, folder: Path, count: int = EXAMPLES, say: Callable[[str], None] = lambda line: None
) -> int:
    """Write the site and return its size in bytes.

    Args:
        folder: made if it is not there; it must be empty or hold an earlier export.
        count: how many test pictures, an equal number of each class.
        say: gets a line for each model.
    """
    facts = catalogue.facts()
    examples = catalogue.examples(facts[0].examples)
    fitting = [
        model
        for model in facts
        if tuple(model.image_shape) == examples.image_shape
        and len(model.classes) == len(examples.classes)
        and model.classes == facts[0].classes  # digits and clothes have the same shapes
    ]
    if not fitting:
        raise TorchcapsError(f"no test pictures fit {facts[0].id}; name some with --data")
    for model in facts:
        if model not in fitting:
            say(f"left out {model.id}: it takes other pictures than {fitting[0].id}")
    _make_room(folder)
    site = _Site(folder)
    for path, (content, _) in page_files().items():
        site.write(path, content)
    chosen = _of_each_class(examples, count)
    site.write_json("config.json", Config(static=True, version=__version__, examples=chosen).model_dump())
    _write_examples(site, "examples", examples, chosen)
    if examples.examples.pairs is not None:  # to lay over each other
        singles = sample_set()
        _write_examples(site, "singles", singles, _of_each_class(singles, count))
    shown: list[dict[str, Any]] = []
    for model in fitting:
        before = site.size
        error = catalogue.survey(model.id).error if model.test_error is None else model.test_error
        source = model.examples and examples.id  # whichever were its own, these are here
        update = {"checkpoints": [], "test_error": error, "examples": source}
        shown.append(model.model_copy(update=update).model_dump())
        _write_model(site, catalogue, model, examples, chosen)
        say(f"{model.id}: {(site.size - before) / 1e6:.1f} MB")
    site.write_json("data/models.json", shown)  # last: its presence says that the site is whole
    return site.size


class _Site:
    """Files below one folder, counted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.size = folder, 0

    def write(self, path: str, content: bytes) -> None:
        write_file(self.folder / path, content, option=None)
        self.size += len(content)

    def write_json(self, path: str, value: Any) -> None:
        self.write(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def write_tensors(self, path: str, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
        self.write(f"{path}.safetensors", pack_tensors(tensors, metadata))


def _write_examples(site: _Site, name: str, examples: ExampleSet, chosen: list[int]) -> None:
    site.write_json(f"data/{name}.json", _example_facts(examples, chosen))
    for index in chosen:
        picture = {"image": examples.pictures(torch.tensor([index]))[0]}
        site.write_tensors(f"data/{name}/{index}", picture, example_metadata(examples, index))


def _write_model(site: _Site, catalogue: Catalogue, facts: ModelFacts, examples: ExampleSet, chosen: list[int]) -> None:
    network = catalogue.network(facts.id)
    home = f"data/models/{facts.id}"
    if network.has_capsules:
        found = catalogue.survey(facts.id)
        site.write_tensors(f"{home}/statistics", {"mean": found.mean, "std": found.std, "count": found.count})
    if network.runs_in_page:
        site.write_tensors(f"{home}/encoder", *_encoder(network.routed))
    if facts.decoder is not None and facts.decoder.kind == "fully-connected":
        site.write_tensors(f"{home}/decoder", looking.decoder_weights(network, half=True))
    for index in chosen:
        image = to_unit_float(examples.pictures(torch.tensor([index])))
        _write_picture(site, f"{home}/examples/{index}", network, image)
        for kind in KINDS:
            curve = looking.affine(network, image, kind)  # type: ignore[arg-type]
            site.write_tensors(f"{home}/examples/{index}/affine-{kind}", curve)


def _write_picture(site: _Site, home: str, network: Network, image: Tensor) -> None:
    site.write_tensors(f"{home}/forward", looking.forward(network, image))
    if network.page_loop is not None:
        site.write_tensors(f"{home}/votes", looking.votes(network, image, half=True))
    elif network.primary_facts() is not None:  # the page knows one routing; what another did is written down
        found = looking.trace(network, image, iterations=1)
        del found["logits"]
        site.write_tensors(f"{home}/trace", {**found, "coefficients": found["coefficients"].half()})


def _encoder(model: CapsNet) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Everything between a picture and the votes, in half precision, and the settings that go with it."""
    layers = {"primary": model.primary, "classes": model.classes}
    weights = {f"{name}.{key}": value for name, layer in layers.items() for key, value in layer.state_dict().items()}
    rows, columns, types = model.primary_grid
    weights["classes.weight"] = model.classes.weights_for(rows * columns * types)
    for place, (weight, bias) in enumerate(first_convolutions(model)):
        weights |= {f"conv.{place}.weight": weight, f"conv.{place}.bias": bias}
    weights = {name: value.half() for name, value in weights.items()}
    settings = {
        "primary_scale": repr(model.primary.scale),
        "primary_stride": str(model.primary.stride),
        "padding": model.primary.padding,
    }
    return weights, settings


def first_convolutions(model: CapsNet) -> list[tuple[Tensor, Tensor]]:
    """Kernels and biases between a picture and the primary capsules, each followed by a ReLU."""
    if isinstance(model.conv, ConvolutionStem):
        return model.conv.folded()
    assert model.conv.bias is not None
    return [(model.conv.weight, model.conv.bias)]


def _of_each_class(examples: ExampleSet, count: int) -> list[int]:
    """The first examples of each class in turn, until there are enough."""
    truth = examples.truth(torch.arange(len(examples)))
    by_class = [truth[:, j].nonzero()[:, 0].tolist() for j in range(truth.shape[1])]
    chosen: dict[int, None] = {}
    for place in range(max(map(len, by_class))):
        for positions in by_class:
            if len(chosen) < count and place < len(positions):
                chosen[positions[place]] = None
    return list(chosen)


def _make_room(folder: Path) -> None:
    """An earlier export gives way; anything else in the folder is somebody's work."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    config = folder / "config.json"
    if not config.is_file() or b'"static":true' not in config.read_bytes():
        raise TorchcapsError(f"{folder} holds other files; give a new folder, or that of an earlier export")
    shutil.rmtree(folder / "data", ignore_errors=True)


def _example_facts(examples: ExampleSet, chosen: list[int]) -> dict[str, Any]:
    facts = ExampleFacts(
        source=examples.id,
        name=examples.name,
        split="test",
        count=len(examples),
        classes=list(examples.classes),
        image_shape=list(examples.image_shape),
        sources=[examples.id],
        indices=chosen,
        files=examples.files(chosen),
        searched=len(chosen),
    )
    return {**facts.model_dump(), "labels": [examples.labels(index) for index in chosen]}
