"""What the networks are with their defaults, known without building them: a list need not wait for torch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NETWORKS", "Network"]


@dataclass(frozen=True)
class Network:
    """A network by name: the module that registers it, image and classes of its defaults, and what it is."""

    name: str
    module: str
    image_shape: tuple[int, int, int]
    num_classes: int
    parameters: int
    what: str


GREY = (1, 28, 28)
NETWORKS = (
    Network(
        "baseline-cnn",
        "baselines",
        GREY,
        10,
        35_445_522,
        "The paper's baseline on MNIST: 256, 256 and 128 channels of 5×5, then 328, 192 and a softmax, with dropout.",
    ),
    Network(
        "baseline-cnn-multimnist",
        "baselines",
        (1, 36, 36),
        10,
        24_563_978,
        "The paper's baseline on MultiMNIST: 512 of 9×9 and 256 of 5×5, each pooled 2×2, then 1024 and a sigmoid each.",
    ),
    Network(
        "capsnet",
        "capsnet",
        GREY,
        10,
        8_215_728,
        "Convolution → primary capsules → class capsules by routing → decoder.",
    ),
    Network(
        "capsnet-deep",
        "deep",
        GREY,
        10,
        1_673_072,
        "Convolution → primary capsules → stages of capsules, each half as wide as the one before → class capsules.",
    ),
    Network(
        "efficient-capsnet",
        "efficient",
        GREY,
        10,
        161_824,
        "Four convolutions → one depthwise convolution over the whole map → 16 capsules → class capsules.",
    ),
    Network(
        "matrix-capsules",
        "matrix_capsules",
        GREY,
        10,
        68_444,
        "Convolution A → primary capsules B → convolutional capsules C and D → class capsules, all 4×4 poses.",
    ),
    Network(
        "small-cnn",
        "baselines",
        GREY,
        10,
        882_346,
        "A modern small network for fair comparison; fewer parameters than CapsNet's encoder, any picture size.",
    ),
)
