"""The strided convolution against PyTorch's in float64: on a GPU as it is, elsewhere in Triton's interpreter.

The interpreter must be chosen before Triton is imported, so without a GPU one test runs this file once more in a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.nn import PrimaryCapsules
from torchcaps.ops.convolution import strided_convolution, supports
from torchcaps.ops.convolution.tiles import Processor, Tile, choose_splits, forward_tile, gradient_tile

pytest.importorskip("triton", reason="Triton is not installed, so the kernels cannot run")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ON_GPU = torch.cuda.is_available() and not INTERPRETED
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPE = torch.bfloat16 if ON_GPU else torch.float32  # the interpreter cannot multiply bfloat16
needs_kernels = pytest.mark.skipif(
    not (ON_GPU or INTERPRETED), reason="runs inside test_everything_again_in_the_interpreter"
)


@pytest.mark.skipif(ON_GPU or INTERPRETED, reason="the kernels run in this process")
def test_everything_again_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not gpu", __file__]
    result = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]


@dataclass(frozen=True)
class Case:
    B: int = 3
    C: int = 64
    N: int = 64
    H: int = 5
    W: int = 6
    KH: int = 3
    KW: int = 3
    stride: int = 2
    bias: bool = False

    def inputs(self, dtype: torch.dtype = DTYPE, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        spread = (self.C * self.KH * self.KW) ** -0.5
        tensors = [
            torch.randn(self.B, self.C, self.H, self.W, generator=generator),
            spread * torch.randn(self.N, self.C, self.KH, self.KW, generator=generator),
        ]
        if self.bias:
            tensors.append(torch.randn(self.N, generator=generator))
        return [x.to(DEVICE, dtype) for x in tensors]

    def run(self, convolve, inputs: list[Tensor], dtype: torch.dtype | None = None) -> list[Tensor]:
        """The maps and every gradient."""
        leaves = [x.detach().to(dtype or x.dtype).requires_grad_() for x in inputs]
        maps = convolve(leaves[0], leaves[1], leaves[2] if self.bias else None, self.stride)
        grad = torch.randn(maps.shape, generator=torch.Generator().manual_seed(7)).to(DEVICE, inputs[0].dtype)
        return [maps.detach(), *torch.autograd.grad(maps, leaves, grad.to(maps.dtype))]


CASES = [
    Case(),
    Case(H=9, W=11, KH=9, KW=9),
    Case(B=5, H=5, W=7, KH=5, KW=5, stride=1),
    Case(B=1, C=128, N=192, H=5, W=4, KH=3, KW=2, stride=3),
    Case(B=5, N=128, H=6, W=5, KH=3, KW=2, stride=3),
    Case(B=17, H=4, W=5, KH=2, KW=1, stride=3, bias=True),  # taps that no output uses, more than 16 examples
    Case(B=9, C=128, H=5, W=5, KH=1, KW=1, stride=1),  # more positions than one tile
    Case(B=2, N=128, H=2, W=3, KH=2, KW=3, stride=4),
]


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels even on the CPU, where nobody takes them by choice."""
    monkeypatch.setenv("TORCHCAPS_BACKEND", "triton")


def assert_as_good_as_pytorch(results: list[Tensor], plain: list[Tensor], exact: list[Tensor]) -> None:
    for name, a, b, e in zip(("maps", "x", "weight", "bias"), results, plain, exact, strict=False):
        assert a.dtype == b.dtype
        # Not below one unit in the last place of a float32 sum, and the rounding of the result.
        one_rounding = max(torch.finfo(torch.float32).eps, torch.finfo(a.dtype).eps / 4)
        limit = 2 * max(relative_error(b, e), one_rounding)
        assert relative_error(a, e) <= limit, f"{name}: {relative_error(a, e):.1e} against {limit / 2:.1e}"


@needs_kernels
@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_at_most_twice_those_of_plain_pytorch(case: Case) -> None:
    assert torch.empty(3).isnan().all()  # so that an element nobody writes cannot pass
    inputs = case.inputs()
    assert supports(*inputs[:2])[0]
    exact = case.run(F.conv2d, inputs, torch.float64)
    assert_as_good_as_pytorch(case.run(strided_convolution, inputs), case.run(F.conv2d, inputs), exact)


@needs_kernels
@pytest.mark.parametrize("splits", [1, 2, 7, 20])  # 18 steps: also a split with nothing to add
def test_tiles_and_splits_do_not_change_the_result(splits: int) -> None:
    from torchcaps.ops.convolution import launch

    case = Case(B=9, C=128, N=128)
    x, weight = (t.contiguous(memory_format=torch.channels_last) for t in case.inputs())
    maps = launch.forward(x, weight, case.stride, Tile(64 if splits > 2 else 16, 64, 4), splits)
    exact = F.conv2d(x.double(), weight.double(), None, case.stride)
    assert relative_error(maps, exact) <= max(1e-6, torch.finfo(DTYPE).eps / 2)
    assert maps.is_contiguous(memory_format=torch.channels_last)


@needs_kernels
@pytest.mark.usefixtures("forced")
def test_the_same_bits_every_time_for_every_layout() -> None:
    case = Case(B=2, H=3, W=5)
    inputs = case.inputs()
    first = case.run(strided_convolution, inputs)
    strided = [t.transpose(2, 3).contiguous().transpose(2, 3) for t in inputs]
    for a, b in zip(first, case.run(strided_convolution, strided), strict=True):
        assert torch.equal(a, b)


@needs_kernels
@pytest.mark.usefixtures("forced")
def test_an_expanded_gradient_an_empty_batch_and_frozen_tensors() -> None:
    x, weight = (t.requires_grad_() for t in Case(B=2, H=3, W=5).inputs())
    exact = F.conv2d(x.double(), weight.double(), None, 2).sum()  # the gradient of a sum is one number
    for leaf, frozen in ((x, (x, weight.detach())), (weight, (x.detach(), weight))):
        (grad,) = torch.autograd.grad(strided_convolution(*frozen, stride=2).sum(), leaf)
        (expected,) = torch.autograd.grad(exact, leaf, retain_graph=True)
        assert relative_error(grad, expected.double()) <= 4 * torch.finfo(DTYPE).eps
    empty = x[:0].detach().requires_grad_()
    maps = strided_convolution(empty, weight, stride=2)
    grad_empty, grad_weight = torch.autograd.grad(maps.sum(), (empty, weight))
    assert (maps.shape, grad_empty.shape) == ((0, 64, 1, 2), (0, 64, 3, 5))
    assert not grad_weight.any()


@needs_kernels
@pytest.mark.usefixtures("forced")
def test_the_gradient_has_a_gradient() -> None:
    def penalty(convolve, inputs: list[Tensor]) -> tuple[Tensor, ...]:
        x, weight = (t.detach().requires_grad_() for t in inputs)
        (grad_x,) = torch.autograd.grad(convolve(x, weight, None, 2).square().sum(), x, create_graph=True)
        return torch.autograd.grad(grad_x.square().sum(), (x, weight))

    inputs = Case(B=1, H=3, W=5).inputs()
    exact = penalty(F.conv2d, [t.double() for t in inputs])
    for a, b, e in zip(penalty(strided_convolution, inputs), penalty(F.conv2d, inputs), exact, strict=True):
        assert relative_error(a, e) <= 2 * max(relative_error(b, e), torch.finfo(torch.float32).eps)


@needs_kernels
@pytest.mark.usefixtures("forced")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's modules use what torch calls old
def test_registration_and_whole_graph_compilation() -> None:
    from torchcaps.ops.convolution import op

    x, weight = (t.requires_grad_() for t in Case(B=2, H=3, W=5).inputs())
    op.convolve(x, weight, 2)  # registers both
    tolerance = {"rtol": 0.02, "atol": 0.02} if ON_GPU else {}
    torch.library.opcheck(torch.ops.torchcaps.strided_convolution.default, (x, weight, 2), **tolerance)
    grad = torch.randn(2, 64, 1, 2, device=DEVICE, dtype=DTYPE, requires_grad=True)
    arguments = (grad, weight, 2, 3, 5)
    quick = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.torchcaps.strided_convolution_data_gradient.default, arguments, test_utils=quick)

    def function(x: Tensor, weight: Tensor) -> Tensor:
        return strided_convolution(x, weight, None, 2)

    compiled = torch.compile(function, fullgraph=True, backend="inductor" if ON_GPU else "aot_eager")
    results = []
    for call in (function, compiled):
        maps = call(x, weight)
        results.append([maps, *torch.autograd.grad(maps.square().sum(), (x, weight))])
    torch.testing.assert_close(results[0], results[1])


@needs_kernels
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_primary_capsules_are_the_same_with_and_without(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = PrimaryCapsules(64, types=8, dim=8, kernel_size=3, padding="same", scale=scale).to(DEVICE, DTYPE)
    nn.init.normal_(layer.bias)
    features = Case().inputs()[0]
    results = {}
    for name in ("triton", "eager"):
        monkeypatch.setenv("TORCHCAPS_BACKEND", name)
        capsules = layer(features)
        results[name] = [capsules, *torch.autograd.grad(capsules[..., 0].sum(), list(layer.parameters()))]
    precision = {} if torch.float32 == DTYPE else {"rtol": 0.05, "atol": 0.05}
    torch.testing.assert_close(results["triton"], results["eager"], **precision)


def kernels_ran(call) -> bool:
    """Whether ``call`` went through the custom op."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return any("torchcaps::strided_convolution" in event.key for event in profile.key_averages())


@needs_kernels
def test_the_environment_decides_on_the_cpu_and_against_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = PrimaryCapsules(64, types=8, dim=8, kernel_size=3).to(DEVICE, DTYPE)
    features = Case(B=1, H=3, W=3).inputs()[0]
    for name, runs in {"triton": True, "eager": False, "naive": False, "auto": ON_GPU}.items():
        monkeypatch.setenv("TORCHCAPS_BACKEND", name)
        assert kernels_ran(lambda: layer(features)) == runs, name


def test_plain_pytorch_where_the_kernels_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHCAPS_BACKEND", "triton")
    odd = Case(C=3, N=5, bias=True)
    inputs = odd.inputs(torch.float64)
    assert all(map(torch.equal, odd.run(strided_convolution, inputs), odd.run(F.conv2d, inputs)))
    features, weight = Case(B=1, H=3, W=3).inputs(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert strided_convolution(features.cpu(), weight.cpu()).dtype == torch.bfloat16
        assert strided_convolution(features.cpu().double(), weight.cpu().double()).dtype == torch.float64
    with pytest.raises(RuntimeError, match="expected scalar type"):  # PyTorch's own words
        strided_convolution(features.cpu(), weight.cpu().double())


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        (((1, 64, 9, 9), (64, 64, 3, 3)), "interpreted on the CPU, for tests only"),
        (((1, 48, 9, 9), (64, 48, 3, 3)), "48 → 64 channels are not multiples of 64"),
        (((1, 64, 9, 9), (96, 64, 3, 3)), "64 → 96 channels are not multiples of 64"),
        (((1, 128, 9, 9), (64, 64, 3, 3)), "the weight is for 64 channels, the input has 128"),
        (((1, 64, 2, 9), (64, 64, 3, 3)), "a 3×3 kernel does not fit into 2×9"),
        (((64, 9, 9), (64, 64, 3, 3)), "x and weight must have four dimensions each and lie on one device"),
        (((1, 64, 5800, 5800), (64, 64, 3, 3)), "one example or the weight has 2³¹ elements or more"),
    ],
)
def test_the_reason_is_given(shapes: tuple, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    x, weight = (torch.zeros(1).expand(shape) for shape in shapes)  # no memory, whatever the shape
    assert supports(x, weight) == (reason.startswith("interpreted"), reason)


def test_the_reason_is_the_device_or_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.zeros(1, 64, 3, 3), torch.zeros(64, 64, 3, 3)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert supports(x.double(), weight.double()) == (False, "torch.float64 is not float32")
    assert supports(x, weight, torch.bfloat16) == (False, "torch.bfloat16 is not float32")
    monkeypatch.delenv("TRITON_INTERPRET")
    assert "TRITON_INTERPRET=1" in supports(x, weight)[1]
    assert supports(x.to("meta"), weight.to("meta"))[1].endswith("the input is on meta")


def test_tiles_are_those_measured_as_the_fastest() -> None:
    """By ``records/gpu-routing/strided_convolution.csv``: 20×20×256 → 6×6×256, 9×9 kernels, on an H200."""
    h200 = Processor()
    for B, splits in ((128, 3), (512, 5)):
        assert forward_tile(36 * B, 256, h200) == gradient_tile(B, 256, h200) == Tile(128, 256, 8, 3)
        assert choose_splits(-(-36 * B // 128), 81 * 4, h200) == splits
    small_memory = Processor(multiprocessors=84, shared_memory=99 * 1024)
    assert forward_tile(4608, 256, small_memory) == Tile(128, 128, 4, 3)
    assert [gradient_tile(B, 192, h200).rows for B in (1, 16, 17, 64, 65, 1000)] == [16, 16, 32, 64, 128, 128]
    assert gradient_tile(1000, 192, h200).columns == 64
    assert choose_splits(10_000, 324, h200) == 1  # enough tiles to fill the chip
    assert choose_splits(1, 1, h200) == 1


def relative_error(x: Tensor, exact: Tensor) -> float:
    return float((x.double() - exact).norm() / exact.norm().clamp(min=1e-30))
