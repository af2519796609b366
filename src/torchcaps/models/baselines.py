"""The convolutional networks that capsule networks are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from torch import Tensor, nn

from torchcaps.models.base import Model
from torchcaps.models.output import ClassifierOutput
from torchcaps.models.registry import register_model
from torchcaps.nn import PictureConv2d
from torchcaps.ops.precision import at_least_float32
from torchcaps.ranges import Classes, ImageShape, Share, Size, Whole

__all__ = ["BaselineCNN", "MultiBaselineCNN", "SmallCNN"]


class _Classifier(Model):
    features: nn.Sequential
    head: nn.Sequential
    multi_label = False  # softmax over the classes, or a sigmoid for each

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.take_settings(settings)

    def forward(self, images: Tensor) -> ClassifierOutput:
        self.check_images(images)
        logits = at_least_float32(self.head(self.features(images)))
        return ClassifierOutput(logits, logits.sigmoid() if self.multi_label else logits.softmax(dim=1))

    def make_loss(self) -> nn.Module:
        """The loss that belongs to the outputs; it takes logits."""
        return nn.BCEWithLogitsLoss() if self.multi_label else nn.CrossEntropyLoss()

    def training_outputs(self, images: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        return (self(images).logits,)

    def _check_pooling(self, times: int) -> None:
        _, H, W = self.image_shape
        if min(H, W) < 2**times:
            raise ValueError(
                f"pictures of {H}×{W} are too small to be halved {times} times; use at least {2**times}×{2**times}"
            )


@register_model("baseline-cnn")
class BaselineCNN(_Classifier):
    """The paper's baseline on MNIST: 256, 256 and 128 channels of 5×5, then 328, 192 and a softmax, with dropout."""

    def __init__(self, image_shape: ImageShape = (1, 28, 28), num_classes: Classes = 10, dropout: Share = 0.5) -> None:
        super().__init__(locals())
        C, H, W = self.image_shape
        self.features = nn.Sequential(
            PictureConv2d(C, 256, 5, padding="same"),
            nn.ReLU(),
            nn.Conv2d(256, 256, 5, padding="same"),
            nn.ReLU(),
            nn.Conv2d(256, 128, 5, padding="same"),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(128 * H * W, 328),
            nn.ReLU(),
            nn.Linear(328, 192),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(192, num_classes),
        )


@register_model("baseline-cnn-multimnist")
class MultiBaselineCNN(_Classifier):
    """The paper's baseline on MultiMNIST: 512 of 9×9 and 256 of 5×5, each pooled 2×2, then 1024 and a sigmoid each."""

    multi_label = True

    def __init__(self, image_shape: ImageShape = (1, 36, 36), num_classes: Classes = 10) -> None:
        super().__init__(locals())
        self._check_pooling(2)
        C, H, W = self.image_shape
        self.features = nn.Sequential(
            PictureConv2d(C, 512, 9, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(512, 256, 5, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(256 * (H // 4) * (W // 4), 1024),
            nn.ReLU(),
            nn.Linear(1024, num_classes),
        )


@register_model("small-cnn")
class SmallCNN(_Classifier):
    """A modern small network for fair comparison; fewer parameters than CapsNet's encoder, any picture size."""

    def __init__(
        self,
        image_shape: ImageShape = (1, 28, 28),
        num_classes: Classes = 10,
        channels: Size = 32,
        hidden: Annotated[int, Whole(1, 1_000_000)] = 512,
        dropout: Share = 0.5,
        multi_label: bool = False,
    ) -> None:
        super().__init__(locals())
        self._check_pooling(3)
        self.multi_label = multi_label
        _, H, W = self.image_shape
        blocks: list[nn.Module] = []
        before = self.image_shape[0]
        for after in (channels, 2 * channels, 4 * channels):
            for width in (before, after):
                blocks += [PictureConv2d(width, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            blocks.append(nn.MaxPool2d(2))
            before = after
        self.features = nn.Sequential(*blocks)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d((min(4, H // 8), min(4, W // 8))),
            nn.Flatten(),
            nn.Linear(4 * channels * min(4, H // 8) * min(4, W // 8), hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, num_classes),
        )
