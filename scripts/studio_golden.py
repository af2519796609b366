"""Write the cases that the studio's TypeScript is tested against: inputs and what PyTorch makes of them.

    python scripts/studio_golden.py [FOLDER]

Each file is in the safetensors format, small enough to be committed; ``__metadata__`` holds the settings as strings.
Everything is computed in float64 from inputs rounded to float32, so the page's error is its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from torchcaps import ops
from torchcaps.data import sample_digits
from torchcaps.data.readers.written_digit import find_digit
from torchcaps.nn import ReconstructionDecoder, mask_classes

FOLDER = Path(__file__).parent.parent / "studio-web" / "test" / "golden"
SHAPES = {"small": (12, 3, 4), "odd": (63, 7, 5), "demo": (288, 10, 16)}  # I, J, D
ITERATIONS = (1, 2, 3, 4, 5)


def main(folder: Path) -> None:
    """Write every case into ``folder``."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    cases = {"squash": squash_case(), "decoder": decoder_case(), "routing-2d": plane_case()}
    cases["written-digit"] = written_digit_case()
    for name, (I, J, D) in SHAPES.items():
        for leaky in (False, True):
            for with_bias in (False, True):
                label = f"routing-{name}{'-leaky' if leaky else ''}{'-bias' if with_bias else ''}"
                if name == "demo" and leaky != with_bias:
                    continue  # two cases of full size are enough
                cases[label] = routing_case(I, J, D, leaky, with_bias)
    for name, (tensors, settings) in cases.items():
        plain = {key: _plain(tensor) for key, tensor in tensors.items()}
        file = folder / f"{name}.safetensors"
        save_file(plain, file, metadata=settings)
        file.chmod(0o644)
    total = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    print(f"wrote {len(cases)} cases, {total / 1000:.0f} kB, to {folder}")


Case = tuple[dict[str, Tensor], dict[str, str]]


def squash_case() -> Case:
    """Eq. 1 for ordinary, zero, tiny and huge vectors; ``lengths`` are those of the squashed ones."""
    x = torch.randn(16, 8)
    x[0] = 0
    x[1] *= 1e-12
    x[2] *= 1e-25  # its square is below the least float32
    x[3] *= 1e15
    squashed = ops.squash(x.double())
    return {"input": x, "output": squashed, "lengths": squashed.norm(dim=-1)}, {"dim": "-1"}


def routing_case(I: int, J: int, D: int, leaky: bool, with_bias: bool) -> Case:
    """Procedure 1: ``capsules.R [J, D]`` for R of 1 to 5, and the trace of the longest.

    An iteration does not know how many follow, so the longest trace (``coefficients`` and ``logits`` ``[R, I, J]``,
    ``outputs`` ``[R, J, D]``, ``entropy`` ``[R]``) begins with each shorter one.
    """
    votes = torch.randn(I, J, D) * (0.3 if I > 100 else 1.0)
    bias = torch.randn(J, D) * 0.1
    tensors = {"votes": votes, "bias": bias if with_bias else torch.zeros(J, D)}
    for iterations in ITERATIONS:
        capsules, trace = ops.dynamic_routing(
            votes.double()[None],
            iterations,
            bias.double() if with_bias else None,
            leaky,
            return_trace=True,
        )
        tensors[f"capsules.{iterations}"] = capsules[0]
    tensors |= {
        "coefficients": trace.coefficients[:, 0],
        "logits": trace.logits[:, 0],
        "outputs": trace.outputs[:, 0],
        "entropy": trace.entropy()[:, 0],
    }
    return tensors, {"iterations": str(ITERATIONS[-1]), "leaky": str(leaky).lower(), "bias": str(with_bias).lower()}


def written_digit_case() -> Case:
    """Photographs of a digit, ``picture.NAME`` ``[H, W]`` from 0 to 255, and what is cut out, ``digit.NAME``."""
    digit = sample_digits("test").images[17, 0].numpy()
    ink = np.kron(digit / 255, np.ones((4, 4)))  # [112, 112]
    y, x = np.mgrid[:112, :112]
    shade = np.where(x + y > 120, 0.7, 1) * (1 - 0.2 * x / 112)
    squares = 1 - 0.25 * ((x % 14 == 3) | (y % 14 == 5))
    noise = np.random.default_rng(0).normal(0, 5, ink.shape)
    table = np.where((x + 2 * y < 40) | (x > 107), 0.2, 1)
    pictures = {
        "shade": 220 * shade * (1 - 0.8 * ink),
        "squares": 230 * shade * squares * (1 - 0.85 * ink) + noise,
        "table": 210 * table * (1 - 0.7 * ink) + noise,
        "chalk": 40 + 20 * shade + 150 * ink + noise,
        "empty": 200 * shade + noise,
        "cropped": 255 * (1 - ink[ink.any(axis=1)][:, ink.any(axis=0)]),
        "small": digit[1:-1].astype(np.float64),
    }
    tensors = {}
    for name, picture in pictures.items():
        grey = picture.clip(0, 255).round().astype(np.uint8)
        tensors[f"picture.{name}"] = torch.from_numpy(grey)
        found = find_digit(grey.astype(np.float64))
        tensors[f"digit.{name}"] = torch.from_numpy(found.pixels)
        tensors[f"inverted.{name}"] = torch.tensor([int(found.inverted)])
    return tensors, {"invert": "auto"}


def plane_case() -> Case:
    """Six arrows in the plane and two parents, one iteration after the other, with the sums before the squash."""
    angles = torch.tensor([0.2, 0.3, 0.25, 2.0, -1.4, 0.1])
    first = torch.stack([angles.cos(), angles.sin()], dim=1)  # [I, 2]
    second = torch.tensor([[1.0, 0.1], [-0.6, 0.8], [0.2, -1.0], [0.9, 0.3], [-1.0, 0.0], [0.0, 1.2]])
    votes = torch.stack([first, second], dim=1)  # [I, J, D] = [6, 2, 2]
    _, trace = ops.dynamic_routing(votes.double()[None], 5, return_trace=True)
    sums = torch.einsum("rij,ijd->rjd", trace.coefficients[:, 0], votes.double())
    agreement = torch.einsum("ijd,rjd->rij", votes.double(), trace.outputs[:, 0])
    tensors = {
        "votes": votes,
        "logits": trace.logits[:, 0],
        "coefficients": trace.coefficients[:, 0],
        "sums": sums,
        "outputs": trace.outputs[:, 0],
        "agreement": agreement,
    }
    return tensors, {"iterations": "5", "leaky": "false"}


def decoder_case() -> Case:
    """A small decoder of three layers on masked capsules, for pictures of 3×5×6."""
    J, D, image_shape = 4, 6, (3, 5, 6)
    decoder = ReconstructionDecoder(J, D, image_shape, hidden=(20, 30))
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    capsules = ops.squash(torch.randn(5, J, D))
    classes = torch.tensor([0, 1, 2, 3, 1])
    tensors = {"capsules": capsules, "classes": classes, "masked": mask_classes(capsules, classes)}
    for number, layer in enumerate(decoder.layers):
        for name, value in layer.state_dict().items():
            tensors[f"layer{number}.{name}"] = value.clone()
    with torch.no_grad():
        tensors["pictures"] = decoder.double()(capsules.double(), classes)
    return tensors, {"image_shape": "[3, 5, 6]"}


def _plain(tensor: Tensor) -> Tensor:
    return (tensor.float() if tensor.is_floating_point() else tensor).detach().contiguous().clone()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
