"""Write ``golden/encoder-*.safetensors``: small networks whose every number the page's encoder must find again."""

from pathlib import Path

import torch
from safetensors.torch import save_file

import torchcaps
from torchcaps import ops

FOLDER = Path(__file__).parent / "golden"
SMALL = dict(conv_channels=5, conv_kernel=3, primary_types=3, primary_dim=4, primary_kernel=3, capsule_dim=6)


@torch.no_grad()
def write(folder: Path, name: str, **settings: object) -> None:
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", image_shape=(2, 9, 8), num_classes=4, decoder="none", **SMALL, **settings)
    image = torch.rand(2, 9, 8)
    lower = model.lower_capsules(image[None])
    tensors = {
        "image": image,
        "conv.weight": model.conv.weight,
        "conv.bias": model.conv.bias,
        "primary.weight": model.primary.weight,
        "primary.bias": model.primary.bias,
        "classes.weight": model.classes.weight,
        "primary_lengths": ops.capsule_lengths(lower)[0],
        "votes": ops.votes(lower, model.classes.weight)[0],
        "capsules": model(image[None]).capsules[0],
    }
    if model.classes.bias is not None:
        tensors["classes.bias"] = model.classes.bias
    facts = {
        "primary_scale": str(model.primary.scale),
        "primary_stride": str(model.primary.stride),
        "padding": model.primary.padding,
    }
    save_file(
        {key: value.contiguous() for key, value in tensors.items()}, folder / f"encoder-{name}.safetensors", facts
    )


def main(folder: Path) -> None:
    """Write every case into ``folder``."""
    write(folder, "official", preset="official")
    write(folder, "paper", preset="paper")
    write(folder, "same-shared", preset="official", padding="same", shared_weights=True)


if __name__ == "__main__":
    main(FOLDER)
