"""Write ``golden/encoder-*.safetensors``: small networks whose every number the page's encoder must find again."""

from pathlib import Path

import torch
from safetensors.torch import save_file

import torchcaps
from torchcaps import ops
from torchcaps.studio.export import first_convolutions

FOLDER = Path(__file__).parent / "golden"
SMALL = dict(conv_channels=5, conv_kernel=3, primary_types=3, primary_dim=4, primary_kernel=3, capsule_dim=6)


@torch.no_grad()
def write(folder: Path, name: str, **settings: object) -> None:
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", image_shape=(2, 9, 8), num_classes=4, decoder="none", **SMALL, **settings)
    for norm in filter(lambda layer: isinstance(layer, torch.nn.BatchNorm2d), model.modules()):
        for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            values.uniform_(0.5, 1.5)
    model.eval()
    image = torch.rand(2, 9, 8)
    lower = model.lower_capsules(image[None])
    tensors = {
        "image": image,
        "primary.weight": model.primary.weight,
        "primary.bias": model.primary.bias,
        "classes.weight": model.classes.weight,
        "primary_lengths": ops.capsule_lengths(lower)[0],
        "votes": ops.votes(lower, model.classes.weight)[0],
        "capsules": model(image[None]).capsules[0],
    }
    for place, (weight, bias) in enumerate(first_convolutions(model)):
        tensors |= {f"conv.{place}.weight": weight, f"conv.{place}.bias": bias}
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
    write(folder, "stem", preset="official", stem=(4, 5))
    write(folder, "same-shared", preset="official", padding="same", shared_weights=True)


if __name__ == "__main__":
    main(FOLDER)
