"""Write the cases that the studio's TypeScript is tested against: inputs and what PyTorch makes of them.

    python scripts/studio_golden.py [FOLDER]

Each file is in the safetensors format, small enough to be committed; ``__metadata__`` holds the settings as strings.
Everything is computed in float64 from inputs rounded to float32, so the page's error is its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from torchcaps import ops
from torchcaps.nn import ReconstructionDecoder, mask_classes

FOLDER = Path(__file__).parent.parent / "studio-web" / "test" / "golden"
SHAPES = {"small": (12, 3, 4), "odd": (63, 7, 5), "demo": (288, 10, 16)}  # I, J, D
ITERATIONS = (1, 2, 3, 4, 5)


def main(folder: Path) -> None:
    """Write every case into ``folder``."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    cases = {"squash": squash_case(), "decoder": decoder_case(), "routing-2d": plane_case()}
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
    return (tensor if tensor.dtype == torch.int64 else tensor.float()).detach().contiguous().clone()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
