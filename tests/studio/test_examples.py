"""Test pictures: by index, by class, the mistakes of a model, at random."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from starlette.testclient import TestClient

import torchcaps
from published_files import write_picture_folder
from torchcaps.data import load, sample_digits
from torchcaps.data.augment.photometric import Standardize
from torchcaps.data.augment.pipeline import Augmentations
from torchcaps.eval import load_model
from torchcaps.models.shipped import shipped_folder
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio import catalogue as catalogue_module
from torchcaps.studio.example_sets import sample_set
from torchcaps.studio.looking import survey
from torchcaps.studio.tensors import unpack_tensors


def metadata(content: bytes) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]


def test_a_set_and_its_pictures(client):
    facts = client.get("/api/examples").json()
    assert (facts["source"], facts["count"], facts["image_shape"]) == ("mnist-sample", 500, [1, 28, 28])
    assert facts["indices"] is None
    test = sample_digits("test")
    answer = client.get("/api/examples/17")
    assert torch.equal(unpack_tensors(answer.content)["image"], test.images[17])
    label = str(int(test.labels[17]))
    told = {"index": "17", "label": label, "class": label, "labels": f"[{label}]", "things": "1"}
    assert metadata(answer.content) == told


def test_pictures_of_ones_own_have_the_names_of_their_files(tmp_path):
    folder = write_picture_folder(tmp_path / "own", {"cat": 10, "döner": 10})
    model = torchcaps.create_model("small-cnn", image_shape=(1, 8, 8), num_classes=2, channels=4)
    model.save_pretrained(tmp_path / "m")
    catalogue = Catalogue([tmp_path / "m"], f"folder:{folder}")
    with TestClient(create_app(catalogue), base_url="http://127.0.0.1") as client:
        names = [metadata(client.get(f"/api/examples/{index}").content)["file"] for index in range(4)]
        filtered = client.get("/api/examples?label=1").json()
        assert filtered["files"] == [names[index] for index in filtered["indices"]]
        assert client.get("/api/examples?source=mnist-sample&label=1").json()["files"] is None
    assert tuple(names) == load(f"folder:{folder}").test.files
    assert {name.split("/")[0] for name in names} == {"cat", "döner"}


def test_filters(client, small_run):
    labels = sample_digits("test").labels
    threes = (labels == 3).nonzero()[:, 0].tolist()
    assert client.get("/api/examples?label=3").json()["indices"] == threes
    chosen = client.get("/api/examples?label=3&random=5").json()["indices"]
    assert len(set(chosen)) == 5
    assert set(chosen) <= set(threes)
    with torch.no_grad():
        named = load_model(small_run)(sample_digits("test").images.float() / 255).lengths.argmax(1)
    wrong = (named != labels).nonzero()[:, 0].tolist()
    assert client.get("/api/examples?only_mistakes_of=small").json()["indices"] == wrong
    of_class = client.get("/api/examples?only_mistakes_of=small&label=3").json()
    assert of_class["indices"] == [index for index in wrong if labels[index] == 3]
    assert of_class["searched"] == 500


def test_a_network_of_any_number_of_classes_is_not_listed_as_one_of_single_things(small_run, tmp_path):
    run = tmp_path / "any"
    shutil.copytree(small_run, run)
    facts = json.loads((run / "environment.json").read_text())
    facts["data"]["any_number_of_classes"] = True
    (run / "environment.json").write_text(json.dumps(facts))
    assert [facts.multi for facts in Catalogue([run, small_run]).facts()] == [0, 1]


def test_pairs_have_two_labels_and_a_set_of_their_own(client):
    source = client.get("/api/models").json()[3]["examples"]
    assert source in client.get("/api/examples").json()["sources"]
    facts = client.get(f"/api/examples?source={source}").json()
    assert (facts["image_shape"], facts["count"]) == ([1, 36, 36], 2000)
    answer = client.get(f"/api/examples/5?source={source}").content
    assert len(json.loads(metadata(answer)["labels"])) == 2
    assert metadata(answer)["things"] == "2"
    refused = client.get("/api/examples?source=mnist-sample&only_mistakes_of=pairs")
    assert refused.status_code == 400


def test_shipped_weights_get_embedded_pictures_and_the_error_of_their_card(monkeypatch):
    """Nothing is fetched for them, and pairs are made where they learned from pairs."""
    monkeypatch.setattr("torchcaps.data.registry.fetch", lambda *_: pytest.fail("something is fetched"))
    catalogue = Catalogue(["capsnet-mnist", "capsnet-multimnist", "capsnet-fashion"])
    single, pairs, clothes = catalogue.facts()
    assert (single.source, single.multi, single.trained_on, single.examples) == ("shipped", 1, "mnist", "mnist-sample")
    assert (pairs.source, pairs.multi, pairs.trained_on) == ("shipped", 2, "multimnist:paper")
    assert (clothes.multi, clothes.trained_on, clothes.examples) == (1, "fashion-mnist", "fashion-sample")
    assert clothes.classes == list(catalogue.examples("fashion-sample").classes)
    for facts in (single, pairs, clothes):
        assert facts.in_page
        card = json.loads((shipped_folder(facts.id) / "card.json").read_text())
        assert facts.test_error == card["error_percent"] / 100
    assert catalogue.examples().image_shape == (1, 28, 28)
    assert len(catalogue.examples(pairs.examples).labels(0)) == 2


def test_a_damaged_card_does_not_stop_the_studio(tmp_path, monkeypatch):
    shutil.copytree(shipped_folder("capsnet-mnist"), tmp_path / "mine")
    (tmp_path / "mine" / "card.json").write_text("{")
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    (facts,) = Catalogue(["mine"]).facts()
    assert (facts.source, facts.test_error) == ("shipped", None)


def test_a_folder_of_ones_own_goes_before_shipped_weights_of_the_same_name(small_run, tmp_path, monkeypatch):
    (tmp_path / "capsnet-mnist").symlink_to(small_run)
    monkeypatch.chdir(tmp_path)
    (facts,) = Catalogue(["capsnet-mnist"]).facts()
    assert (facts.source, facts.trained_on) == ("run", "mnist-sample")


def test_two_who_look_for_mistakes_leave_a_thread_for_the_others(monkeypatch, small_run, cnn_folder):
    """A survey takes seconds; the second one waits for the first and finds its result."""
    gate, begun = threading.Event(), []

    def slow(network, examples):
        begun.append(network)
        assert gate.wait(30)
        return survey(network, examples)

    monkeypatch.setattr(catalogue_module, "survey", slow)
    app = create_app(Catalogue([small_run, cnn_folder]))
    with TestClient(app, base_url="http://127.0.0.1") as client, ThreadPoolExecutor(3) as pool:
        paths = ["/api/examples?only_mistakes_of=small"] * 2 + ["/api/models/small/statistics"]
        waiting = [pool.submit(client.get, path) for path in paths]
        try:
            assert client.get("/api/models").status_code == 200
        finally:
            gate.set()
        assert [each.result().status_code for each in waiting] == [200] * 3
    assert len(begun) == 1


def test_pictures_are_shown_as_they_were_before_standardisation():
    """The network is handed standardised ones; what a person sees, and the page sends back, are pixels."""
    plain = sample_set()
    augment = Augmentations((Standardize(),))
    standardised = replace(plain, examples=replace(plain.examples, augment=augment))
    assert torch.equal(standardised.pictures(torch.arange(3)), sample_digits("test").images[:3])
