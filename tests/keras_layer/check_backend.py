"""Run by test_keras_layer.py in a process of its own, since a process has one Keras backend."""

import inspect
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
import torch

from torchcaps import data, ops
from torchcaps.keras import Capsule


def compare(shared: bool, routing: str, squash: str, leaky: bool, use_bias: bool, masked: bool) -> float:
    torch.manual_seed(0)
    u = torch.randn(3, 7, 5)
    mask = torch.rand(3, 7) > 0.3 if masked else None
    layer = Capsule(
        4, 6, 3, shared, routing, squash, leaky, use_bias, keras.initializers.RandomNormal(stddev=0.7, seed=1)
    )
    inputs = keras.ops.convert_to_tensor(u.numpy())
    found = layer(inputs, mask=None if mask is None else keras.ops.convert_to_tensor(mask.numpy()))
    weights = [torch.from_numpy(keras.ops.convert_to_numpy(w)) for w in layer.weights]
    bias = weights[1] if use_bias else None
    votes = ops.votes(u, weights[0])
    if routing == "dynamic":
        expected = ops.dynamic_routing(votes, 3, bias, leaky, mask)
    elif routing == "fixed-point":
        expected = ops.fixed_point_routing(votes, 3, bias, mask, squash).capsules
    else:
        expected = ops.normalized_routing(votes, 3, bias, mask, squash).capsules
    return float(np.abs(keras.ops.convert_to_numpy(found) - expected.numpy()).max())


def documented_weights_after_black_pictures() -> list[np.ndarray]:
    """The network of the docstring, after a step on pictures whose capsules have length 0."""
    names: dict = {}
    exec(inspect.cleandoc(Capsule.__doc__).split("Example::")[1].replace("\n    ", "\n"), names)
    model = names["model"]
    model.compile("sgd", "mse")
    model.fit(np.zeros((4, 28, 28, 1), "float32"), np.eye(10)[:4], verbose=0)
    return model.get_weights()


def train_save_and_load() -> tuple[float, float]:
    """A small network on the embedded digits; returns its accuracy and how far the loaded copy is from it."""
    keras.utils.set_random_seed(0)
    split = data.sample_digits("train")
    images = split.images[:320].float().div(255).permute(0, 2, 3, 1).numpy()
    labels = split.labels[:320].numpy()
    inputs = keras.Input((28, 28, 1))
    x = keras.layers.Conv2D(16, 9, strides=2, activation="relu")(inputs)
    x = keras.layers.Reshape((-1, 8))(keras.layers.Conv2D(16, 5, strides=2)(x))
    capsules = Capsule(10, 8, shared_weights=False, use_bias=True)(x)
    model = keras.Model(inputs, Lengths()(capsules))
    model.compile(keras.optimizers.Adam(3e-3), margin_loss)
    model.fit(images, keras.utils.to_categorical(labels, 10), batch_size=64, epochs=8, verbose=0)
    before = model.predict(images, batch_size=256, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capsules.keras"
        model.save(file)
        again = keras.models.load_model(file)
    after = again.predict(images, batch_size=256, verbose=0)
    return float((before.argmax(1) == labels).mean()), float(np.abs(after - before).max())


@keras.saving.register_keras_serializable("check")
class Lengths(keras.layers.Layer):
    def call(self, capsules):
        return keras.ops.sqrt(keras.ops.sum(keras.ops.square(capsules), axis=-1) + 1e-12)


@keras.saving.register_keras_serializable("check")
def margin_loss(present, lengths):
    missed = keras.ops.square(keras.ops.maximum(0.0, 0.9 - lengths))
    invented = keras.ops.square(keras.ops.maximum(0.0, lengths - 0.1))
    return keras.ops.sum(present * missed + 0.5 * (1 - present) * invented, axis=-1)


def main(backend: str) -> None:
    assert keras.backend.backend() == backend
    cases = [
        (False, "dynamic", "paper", False, False, False),
        (True, "dynamic", "paper", True, True, True),
        (True, "fixed-point", "exponential", False, True, False),
        (False, "normalized", "half", False, False, True),
    ]
    for case in cases:
        difference = compare(*case)
        assert difference < 1e-5, (case, difference)
    zero = Capsule(4, 6)(keras.ops.zeros((2, 3, 5)))
    assert not keras.ops.convert_to_numpy(zero).any()
    for shared, other, axis in ((False, (2, 4, 5), 1), (False, (2, 3, 4), 2), (True, (2, 4, 4), 2)):
        layer = Capsule(4, 6, shared_weights=shared)
        layer(keras.ops.zeros((2, 3, 5)))
        with pytest.raises(ValueError, match=f"expected axis {axis}"):
            layer(keras.ops.zeros(other))
    loud = np.random.default_rng(0).normal(size=(2, 300, 8)).astype("float16") * 10
    half = keras.ops.convert_to_numpy(Capsule(10, 16, dtype="mixed_float16")(keras.ops.convert_to_tensor(loud)))
    assert half.dtype == np.float16
    assert np.isfinite(half).all()
    for wrong, words in (
        ({"routing": "em"}, "unknown routing 'em'"),
        ({"squash": "flat"}, "unknown squash"),
        ({"iterations": 0}, "≥ 1"),
    ):
        with pytest.raises(ValueError, match=words):
            Capsule(4, 6, **wrong)
    assert all(np.isfinite(weight).all() for weight in documented_weights_after_black_pictures())
    assert Capsule(4, 6).compute_output_shape((None, 7, 5)) == (None, 4, 6)
    accuracy, difference = train_save_and_load()
    assert accuracy > 0.6, accuracy  # 0.1 is chance
    assert difference < 1e-6, difference
    print(f"{backend}: {len(cases)} cases, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
