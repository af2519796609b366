"""What "copy as Python" gives: the few lines that make the numbers on the screen again."""

from __future__ import annotations

import base64
import textwrap
import zlib
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from torchcaps.studio.network import Network

__all__ = ["Program", "SnippetKind", "SnippetValues", "embedded_picture", "python_snippet", "sample_picture"]

SnippetKind = Literal["look", "dimensions", "routing", "overlap", "affine"]


@dataclass(frozen=True)
class SnippetValues:
    """What the sliders say, as Python source."""

    capsule: str = "0"
    vector: str = "[]"
    iterations: str = "3"
    transform: str = "'rotate'"
    value: str = "0.0"


@dataclass
class Program:
    """Lines of a program, and the imports that stand before them."""

    imports: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Imports by kind as linters like them, then the lines."""
        standard = sorted(line for line in self.imports if line in ("import base64", "import zlib"))
        others = sorted(self.imports - set(standard), key=lambda line: (line.startswith("from"), line.split()[1]))
        groups = ["\n".join(group) for group in (standard, others, self.lines) if group]
        return "\n\n".join(groups) + "\n"


def sample_picture(sample: str, index: str) -> Program:
    """Source of ``pixels`` ``[1, C, H, W]`` for a test picture of one of the embedded samples."""
    return Program({"from torchcaps.data import load"}, [f"pixels = load({sample!r}).test.images[[{index}]]"])


def embedded_picture(image: Tensor) -> Program:
    """Source of ``pixels`` that holds the bytes of a picture ``[C, H, W]`` themselves."""
    text = base64.b64encode(zlib.compress(image.contiguous().numpy().tobytes(), 9)).decode()
    wrapped = [f'    "{line}"' for line in textwrap.wrap(text, 100)]
    C, H, W = image.shape
    unpack = "pixels = torch.tensor(list(zlib.decompress(base64.b64decode(text))), dtype=torch.uint8)"
    lines = ["text = (", *wrapped, ")", unpack, f"pixels = pixels.reshape(1, {C}, {H}, {W})"]
    return Program({"import base64", "import zlib"}, lines)


def python_snippet(network: Network, kind: SnippetKind, picture: Program, values: SnippetValues) -> str:
    """A program that runs as it is: it loads the same weights, takes the same picture and prints what is shown."""
    program = Program({"import torch", *picture.imports})
    if network.shipped:
        program.imports.add("import torchcaps")
        program.lines.append(f"model = torchcaps.from_pretrained({network.path!r}).eval()")
    else:
        program.imports.add("from torchcaps.eval import load_model")
        program.lines.append(f"model = load_model({network.path!r})")
    program.lines += picture.lines
    if kind == "affine":
        program.imports.add("from torchcaps.studio.affine import transform")
        program.lines.append(f"pixels = transform(pixels[0], {values.transform}, torch.tensor([{values.value}]))")
    program.lines.append("image = pixels.float() / 255")
    if network.standardize is not None:
        program.imports.add("from torchcaps.data.augment.photometric import Standardize")
        program.lines.append("image = Standardize().evaluate(image)")
    if kind == "routing" and network.page_loop is not None:
        program.imports.add("from torchcaps import ops")
    body = {"dimensions": _dimensions, "routing": _routing, "overlap": _overlap}.get(kind, _look)
    program.lines += body(network, values)
    return program.text()


def _look(network: Network, values: SnippetValues) -> list[str]:
    lines = ["with torch.no_grad():", "    out = model(image)"]
    if not network.has_capsules:
        return [*lines, "print(out.probabilities)"]
    if network.capsule_model.decoder is not None:
        lines.append("    picture = model.reconstruct(out.capsules, out.lengths.argmax(1))  # [1, C, H, W]")
    return [*lines, "print(out.lengths)"]


def _dimensions(network: Network, values: SnippetValues) -> list[str]:
    _ = network.drawing  # a network that draws nothing has no such screen
    return [
        "with torch.no_grad():",
        "    capsules = model(image).capsules",
        f"    capsules[0, {values.capsule}] = torch.tensor({values.vector})  # the sliders",
        f"    picture = model.reconstruct(capsules, torch.tensor([{values.capsule}]))  # [1, C, H, W]",
        f"print(capsules[0, {values.capsule}].norm())",
        "print(picture.sum())",
    ]


def _routing(network: Network, values: SnippetValues) -> list[str]:
    _, loop = network.routed, network.page_loop  # the first refuses what has no single routing
    if loop is not None:
        how = [
            "    lower = model.lower_capsules(image)  # [1, I, P]",
            "    votes = model.classes.votes(lower)  # [1, I, J, D]",
            "    capsules, trace = ops.dynamic_routing(",
            f"        votes, {values.iterations}, model.classes.bias, leaky={loop.leaky}, return_trace=True",
            "    )",
            "print(ops.capsule_lengths(capsules))",
        ]
    else:  # with the iterations and the scores of its own
        how = ["    out = model(image, return_trace=True)", "trace = out.trace", "print(out.lengths)"]
    return [
        "with torch.no_grad():",
        *how,
        "print(trace.coefficients[-1, 0])  # [I, J]",
        "print(trace.entropy()[:, 0])  # one for each iteration",
    ]


def _overlap(network: Network, values: SnippetValues) -> list[str]:
    _ = network.drawing
    return [
        "with torch.no_grad():",
        "    out = model(image)",
        "    both = out.lengths[0].topk(2).indices",
        "    pictures = [model.reconstruct(out.capsules, j.reshape(1))[0] for j in both]  # each [C, H, W]",
        "print(both)",
        "print(out.lengths)",
    ]
