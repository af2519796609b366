"""The studio opens every capsule network of the library, with every routing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from starlette.testclient import TestClient

from studio.any_models import NETWORKS, ROUTINGS, save_network
from torchcaps.data import sample_digits
from torchcaps.data.augment.photometric import Standardize
from torchcaps.data.window import to_unit_float
from torchcaps.eval import load_model
from torchcaps.studio import Catalogue, create_app, export_site, looking
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors

EXACT = dict(rtol=1e-5, atol=1e-6)  # the same operations in another batch
EVERY = pytest.mark.parametrize("name", sorted(NETWORKS))


@pytest.fixture(scope="module")
def any_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    for name in NETWORKS:
        save_network(folder, name)
    return folder


@pytest.fixture(scope="module")
def any_client(any_folder) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking, "MOST_SURVEYED", 20)  # the numbers do not matter here
        catalogue = Catalogue([any_folder / name for name in NETWORKS])
        with TestClient(create_app(catalogue), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            yield client


@pytest.fixture(scope="module")
def facts(any_client) -> dict[str, Any]:
    return {model["id"]: model for model in any_client.get("/api/models").json()}


@pytest.fixture(scope="module")
def image() -> torch.Tensor:
    return sample_digits("test").images[[7]].float() / 255


def post(client: TestClient, path: str, **tensors: torch.Tensor) -> Any:
    return client.post(path, content=pack_tensors(tensors), headers={"content-type": MEDIA_TYPE})


def answered(answer: Any) -> dict[str, torch.Tensor]:
    assert answer.status_code == 200, answer.text
    return unpack_tensors(answer.content)


def refused(answer: Any, word: str) -> None:
    assert answer.status_code == 404, answer.text
    assert word in answer.json()["error"]


@EVERY
def test_facts(facts, any_folder, name):
    model, found = load_model(any_folder / name), facts[name]
    assert found["kind"] == "capsnet"
    assert found["architecture"] == model.architecture
    with torch.no_grad():
        out = model(torch.rand(1, 1, 28, 28))
    assert found["capsule_dim"] == out.capsules.shape[2]
    assert found["mask_input"] == 10 * out.capsules.shape[2]
    assert (found["primary"] is not None) == (model.architecture == "capsnet")
    if found["primary"]:
        assert found["primary"]["stride"] == model.primary.stride
    assert (found["decoder"] is not None) == (model.decoder is not None)
    lengths = out.capsules.norm(dim=2)
    assert (found["scores"] == "lengths") == torch.allclose(lengths, out.lengths, **EXACT)


def test_facts_of_routings(facts):
    fused = ("dynamic", "leaky")
    for routing in ROUTINGS:
        found = facts[f"capsnet-{routing}"]
        assert found["routing"] == routing
        assert found["leaky"] == (routing == "leaky")
        assert found["in_page"] == (routing in fused)
    told = {routing: facts[f"capsnet-{routing}"] for routing in ROUTINGS}
    assert {routing for routing in ROUTINGS if told[routing]["scores"] == "activations"} == {
        "em",
        "vb",
        "self-routing",
        "inverted-attention",
    }
    assert (told["em"]["iterations"], told["self-routing"]["iterations"]) == (3, None)
    assert (told["attention"]["normalizes"], told["em"]["normalizes"]) == ("children", "parents")
    deep, matrix = facts["capsnet-deep"], facts["matrix-capsules"]
    assert (deep["routing"], deep["primary"], deep["in_page"]) == ("dynamic", None, False)
    assert (matrix["routing"], matrix["iterations"]) == ("em", 2)


@EVERY
def test_look_dimensions_and_affine(any_client, facts, any_folder, image, name):
    model, home = load_model(any_folder / name), f"/api/models/{name}"
    with torch.no_grad():
        out = model(image)
    answer = answered(post(any_client, f"{home}/forward", images=image))
    torch.testing.assert_close(answer["lengths"], out.lengths, **EXACT)
    torch.testing.assert_close(answer["capsules"], out.capsules, **EXACT)
    curve = answered(post(any_client, f"{home}/affine?kind=rotate", image=image[0]))
    with torch.no_grad():
        expected = model(to_unit_float(curve["images"])).lengths
    torch.testing.assert_close(curve["lengths"], expected, **EXACT)
    statistics = answered(any_client.get(f"{home}/statistics"))
    assert statistics["mean"].shape == out.capsules.shape[1:]
    masked = torch.zeros_like(out.capsules)
    masked[0, 4] = out.capsules[0, 4]
    decoded = post(any_client, f"{home}/decode", capsules=masked)
    weights = any_client.get(f"{home}/decoder")
    if model.decoder is None:
        assert "reconstruction" not in answer
        refused(decoded, "no decoder")
        refused(weights, "decoder")
        return
    with torch.no_grad():
        expected = model.reconstruct(out.capsules, torch.tensor([4]))
        drawn = model.reconstruct(out.capsules, out.lengths.argmax(1))
    torch.testing.assert_close(answered(decoded)["pictures"], expected, **EXACT)
    torch.testing.assert_close(answer["reconstruction"], drawn, **EXACT)
    if facts[name]["decoder"]["kind"] == "fully-connected":
        assert answered(weights)["layer0.weight"].shape[1] == facts[name]["mask_input"]
    else:
        refused(weights, "decode")


@EVERY
def test_routing(any_client, facts, any_folder, image, name):
    model, home = load_model(any_folder / name), f"/api/models/{name}"
    votes = post(any_client, f"{home}/votes", image=image[0])
    trace = post(any_client, f"{home}/trace", image=image[0])
    if facts[name]["primary"] is None:
        refused(votes, "primary capsules")
        refused(trace, "primary capsules")
        return
    found = answered(trace)
    with torch.no_grad():
        out = model(image, return_trace=True)
    torch.testing.assert_close(found["lengths"][-1], out.lengths[0], **EXACT)
    torch.testing.assert_close(found["coefficients"], out.trace.coefficients[:, 0], **EXACT)
    torch.testing.assert_close(found["primary_lengths"], answered(votes)["primary_lengths"], **EXACT)
    assert answered(votes)["votes"].shape == (72, 10, 16)
    assert found["coefficients"].shape[0] == (facts[name]["iterations"] or 1)


@EVERY
def test_programs(any_client, facts, any_folder, image, capsys, name):
    found, home = facts[name], f"/api/models/{name}/python?index=7"
    with torch.no_grad():
        lengths = load_model(any_folder / name)(image).lengths
    vector = ",".join(["0.1"] * found["capsule_dim"])
    needs = {"look": True, "affine": True, "overlap": found["decoder"], "routing": found["primary"]}
    for kind, possible in {**needs, "dimensions": found["decoder"]}.items():
        answer = any_client.get(f"{home}&kind={kind}&vector={vector if kind == 'dimensions' else ''}")
        if not possible:
            refused(answer, "decoder" if kind != "routing" else "primary capsules")
            continue
        assert answer.status_code == 200, answer.text
        names: dict[str, Any] = {}
        exec(compile(answer.text, "snippet", "exec"), names)
        if "out" in names and kind != "affine":
            torch.testing.assert_close(names["out"].lengths, lengths, **EXACT)
    assert "tensor" in capsys.readouterr().out


def test_all_of_them_as_files(any_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(looking, "MOST_SURVEYED", 20)
    names = ["capsnet-em", "capsnet-dynamic", "matrix-capsules", "capsnet-deep", "capsnet-silent"]
    export_site(Catalogue([any_folder / name for name in names]), tmp_path / "site", count=2)
    data = tmp_path / "site" / "data"
    assert [model["id"] for model in json.loads((data / "models.json").read_text())] == names
    index = json.loads((tmp_path / "site" / "config.json").read_text())["examples"][0]
    picture = load_file(data / "examples" / f"{index}.safetensors")["image"].float()[None] / 255
    for name in names:
        home = data / "models" / name
        with torch.no_grad():
            out = load_model(any_folder / name)(picture)
        answer = load_file(home / "examples" / str(index) / "forward.safetensors")
        torch.testing.assert_close(answer["lengths"], out.lengths, **EXACT)
        runs = name in ("capsnet-dynamic", "capsnet-silent")
        assert (home / "encoder.safetensors").is_file() == runs
        assert (home / "examples" / str(index) / "votes.safetensors").is_file() == runs
        assert (home / "examples" / str(index) / "trace.safetensors").is_file() == (name == "capsnet-em")
    trace = load_file(data / "models" / "capsnet-em" / "examples" / str(index) / "trace.safetensors")
    assert set(trace) == {"coefficients", "outputs", "lengths", "primary_lengths"}


def test_standardised_pixels_need_a_server(any_folder):
    catalogue = Catalogue([any_folder / "capsnet-dynamic"])
    network = catalogue.network("capsnet-dynamic")
    assert network.runs_in_page
    network.__dict__["standardize"] = Standardize()  # as a recipe with this step has it
    assert (network.page_loop.leaky, network.runs_in_page) == (False, False)
    facts = catalogue.facts()[0]
    assert (facts.in_page, facts.standardized) == (True, True)  # the page can route it, but not from a picture
