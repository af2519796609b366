import shutil

import numpy as np
import pytest
import torch

import torchcaps
from torchcaps.cli.export import export
from torchcaps.errors import TorchcapsError
from torchcaps.models import export_onnx

SETTINGS = [
    dict(image_shape=(1, 28, 28), conv_channels=32, primary_types=8),
    dict(image_shape=(3, 21, 26), conv_channels=8, primary_types=2, num_classes=3, preset="paper", leaky=True),
]


# Compilers and exporters warn about their own internals, which a user of the model cannot change.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("settings", SETTINGS)
def test_onnx_runtime_agrees_for_every_batch_size(settings, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = torchcaps.create_model("capsnet", **settings).train()
    encoder = onnxruntime.InferenceSession(export_onnx(model, tmp_path / "encoder.onnx"))
    decoder = onnxruntime.InferenceSession(export_onnx(model, tmp_path / "decoder.onnx", part="decoder"))
    assert model.training
    assert sorted(file.name for file in tmp_path.iterdir()) == ["decoder.onnx", "encoder.onnx"]
    for batch_size in (1, 3, 64):
        images = torch.rand(batch_size, *model.image_shape)
        with torch.no_grad():
            out = model(images)
            pictures = model.reconstruct(out.capsules, out.lengths.argmax(1))
        capsules, lengths = encoder.run(None, {"images": images.numpy()})
        (drawn,) = decoder.run(None, {"capsules": capsules, "classes": lengths.argmax(1)})
        np.testing.assert_allclose(capsules, out.capsules.numpy(), atol=1e-4)
        np.testing.assert_allclose(lengths, out.lengths.numpy(), atol=1e-4)
        np.testing.assert_allclose(drawn, pictures.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("efficient-capsnet", {}),
        ("matrix-capsules", dict(A=8, B=3, C=4, D=5)),
    ],
)
def test_other_capsule_networks_are_exported(name, settings, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = torchcaps.create_model(name, num_classes=3, decoder="none", **settings).eval()
    model.save_pretrained(tmp_path / "model")
    export(str(tmp_path / "model"), "onnx", tmp_path / "encoder.onnx", "encoder")
    images = torch.rand(3, *model.image_shape)
    _, lengths = onnxruntime.InferenceSession(tmp_path / "encoder.onnx").run(None, {"images": images.numpy()})
    np.testing.assert_allclose(lengths, model(images).lengths.detach().numpy(), atol=1e-4)


def test_unknown_part(tmp_path):
    with pytest.raises(ValueError, match="'encoder' or 'decoder'"):
        export_onnx(torchcaps.create_model("capsnet", **SETTINGS[1]), tmp_path / "x.onnx", part="middle")


def test_what_cannot_be_exported_is_said_in_words(tmp_path):
    with pytest.raises(TorchcapsError, match=r"capsule networks only, not SmallCNN.* save_pretrained"):
        export_onnx(torchcaps.create_model("small-cnn"), tmp_path / "x.onnx")
    with pytest.raises(TorchcapsError, match="without a decoder"):
        export_onnx(torchcaps.create_model("capsnet", decoder="none"), tmp_path / "x.onnx", part="decoder")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", SETTINGS)
def test_torch_export_with_free_batch_size(settings):
    model = torchcaps.create_model("capsnet", **settings).eval()
    batch = torch.export.Dim.DYNAMIC
    program = torch.export.export(model, (torch.rand(2, *model.image_shape),), dynamic_shapes=({0: batch},))
    images = torch.rand(5, *model.image_shape)
    torch.testing.assert_close(program.module()(images).capsules, model(images).capsules)


def test_compiled_without_a_graph_break():
    """Values and gradients of ``torch.compile(fullgraph=True)``, with the backend that needs no C++ compiler."""
    torch.use_deterministic_algorithms(False)
    model = torchcaps.create_model("capsnet", **SETTINGS[1])
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    images = torch.rand(4, *model.image_shape)
    gradients = []
    for run in (model, compiled):
        model.zero_grad()
        out = run(images)
        out.lengths.square().sum().backward()
        gradients.append([out.capsules, *(p.grad.clone() for p in model.classes.parameters())])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
def test_compiled_by_inductor():
    torch.use_deterministic_algorithms(False)
    model = torchcaps.create_model("capsnet", **SETTINGS[1]).eval()
    images = torch.rand(4, *model.image_shape)
    with torch.no_grad():
        torch.testing.assert_close(
            torch.compile(model, fullgraph=True)(images).capsules, model(images).capsules, rtol=1e-4, atol=1e-6
        )
