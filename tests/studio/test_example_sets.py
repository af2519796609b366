"""A set of test pictures is what it is by all that shapes it: two networks share one only where it is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient

from published_files import write_picture_folder
from studio.own_runs import CLASSES, own_run
from torchcaps.data.augment import build
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.example_sets import ExampleSet, sample_set
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    return write_picture_folder(tmp_path_factory.mktemp("own") / "pets", dict.fromkeys(CLASSES, 10), size=70)


@pytest.fixture(scope="module")
def runs(pictures, tmp_path_factory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    return [
        own_run(root / "small", pictures, (1, 32, 32)),
        own_run(root / "large", pictures, (1, 64, 64)),
        own_run(root / "colour", pictures, (3, 32, 32)),
        own_run(root / "turned", pictures, (1, 32, 32), CLASSES[::-1]),
        own_run(root / "cut", pictures, (1, 32, 32), augment='augment = [{ name = "crop", size = 32 }]'),
        own_run(root / "again", pictures, (1, 32, 32)),
    ]


def test_runs_of_one_folder_have_the_pictures_that_each_learned_from(runs):
    catalogue = Catalogue(runs)
    facts = {model.id: model for model in catalogue.facts()}
    assert catalogue.remarks == []
    sets = {name: model.examples for name, model in facts.items()}
    assert sets["again"] == sets["small"]  # the same in all that counts
    assert len(set(sets.values())) == 5
    with TestClient(create_app(catalogue), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        for name, model in facts.items():
            image = unpack_tensors(client.get(f"/api/examples/0?source={model.examples}").content)["image"]
            assert list(image.shape) == model.image_shape
            answer = client.post(
                f"/api/models/{name}/forward",
                content=pack_tensors({"image": image}),
                headers={"content-type": MEDIA_TYPE},
            )
            assert answer.status_code == 200, answer.text
            found = client.get(f"/api/examples?only_mistakes_of={name}").json()
            assert (found["source"], found["searched"]) == (model.examples, found["count"])
            assert client.get(f"/api/models/{name}/statistics").status_code == 200
            asked = catalogue.examples(model.examples)
            files = [asked.examples.file(position) for position in range(len(asked))]
            labels = [asked.labels(position)[0] for position in range(len(asked))]
            assert [str(file).split("/")[0] for file in files] == [asked.classes[label] for label in labels]
    assert [facts["turned"].classes, facts["small"].classes] == [list(CLASSES[::-1]), list(CLASSES)]


def test_the_name_of_a_set_is_readable_and_the_same_at_every_start(runs, pictures):
    name, again = (Catalogue([runs[1]]).facts()[0].examples for _ in range(2))
    assert name == again
    assert name is not None
    assert "pets-1x64x64-" in name


def test_published_pictures_keep_their_name_unless_something_is_done_to_them():
    plain = sample_set()
    assert plain.id == "mnist-sample"
    others = [
        ExampleSet(plain.examples, margin=6),
        ExampleSet(replace(plain.examples, augment=build([{"name": "crop", "size": 24}]))),
        ExampleSet(replace(plain.examples, classes=tuple("9876543210"))),
    ]
    assert len({plain.id, *(other.id for other in others)}) == 4
    random = replace(plain.examples, augment=build([{"name": "shift", "pixels": 2}, {"name": "standardize"}]))
    assert ExampleSet(random).id == "mnist-sample"  # shifts are of training alone, and are not shown


def test_a_set_says_how_many_things_a_picture_shows(pairs_run):
    plain = sample_set()
    several = replace(plain.examples.split, labels=plain.truth(torch.arange(len(plain))))
    assert ExampleSet(replace(plain.examples, split=several)).things == 0
    pairs = Catalogue([pairs_run]).examples_of("pairs")
    assert (plain.things, pairs.things) == (1, 2)


def test_pictures_that_do_not_fit_are_refused_in_words(runs, pictures, tmp_path):
    """A run folder may be written anew, for pictures of another size, while the studio shows it."""
    run = own_run(tmp_path / "mine", pictures, (1, 32, 32))
    catalogue = Catalogue([run])
    with TestClient(create_app(catalogue), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        own_run(run, pictures, (1, 64, 64))
        (facts,) = client.get("/api/models").json()
        assert (facts["image_shape"], facts["examples"]) == ([1, 64, 64], None)
        for path in ("/api/examples?only_mistakes_of=mine", "/api/models/mine/statistics"):
            answer = client.get(path)
            assert answer.status_code == 404, answer.text
            assert "do not fit this network (1×64×64, 3 classes)" in answer.json()["error"]
