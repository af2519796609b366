"""The strided convolution at full size on a GPU, alone and inside primary capsules: autocast, compiled, captured."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from torchcaps.nn import PrimaryCapsules
from torchcaps.ops.convolution import strided_convolution, supports

pytest.importorskip("triton", reason="Triton is not installed, so the kernels cannot run")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
# The compiler gives advice, and its own modules use what torch calls old.
compiles = pytest.mark.filterwarnings(
    "ignore:TensorFloat32 tensor cores", "ignore::DeprecationWarning", "ignore:The CUDA Graph is empty"
)
profiles = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")


def inputs(B: int, dtype: torch.dtype, C: int = 256, N: int = 256, size: int = 20, kernel: int = 9) -> list[Tensor]:
    spread = (C * kernel**2) ** -0.5
    x = torch.randn(B, C, size, size, device="cuda").to(dtype, memory_format=torch.channels_last)
    weight = (spread * torch.randn(N, C, kernel, kernel, device="cuda")).to(dtype, memory_format=torch.channels_last)
    return [x, weight]


def maps_and_gradients(convolve, tensors: list[Tensor], stride: int) -> list[Tensor]:
    leaves = [t.detach().requires_grad_() for t in tensors]
    maps = convolve(*leaves, None, stride)
    generator = torch.Generator("cuda").manual_seed(7)
    grad = torch.randn(maps.shape, generator=generator, device="cuda").to(tensors[0].dtype)
    return [maps.detach(), *torch.autograd.grad(maps, leaves, grad.to(maps.dtype))]


@pytest.mark.parametrize(
    ("B", "dtype"), [*((B, torch.bfloat16) for B in (1, 20, 33, 128, 130)), (128, torch.float16)], ids=str
)
def test_capsnet_sizes(B: int, dtype: torch.dtype) -> None:
    tensors = inputs(B, dtype)
    assert supports(*tensors) == (True, "the fastest on CUDA")
    compare(tensors, 2)


@pytest.mark.parametrize(
    ("C", "N", "size", "kernel", "stride"),
    [(64, 64, 13, 5, 1), (128, 192, 28, 9, 2), (192, 64, 17, 3, 3), (64, 320, 8, 8, 1), (256, 128, 15, 1, 2)],
)
def test_other_sizes(C: int, N: int, size: int, kernel: int, stride: int) -> None:
    compare(inputs(19, torch.bfloat16, C, N, size, kernel), stride)


def compare(tensors: list[Tensor], stride: int) -> None:
    """Errors at most twice those of plain PyTorch in the same precision; unwritten memory is NaN."""
    assert torch.empty(3, device="cuda").isnan().all()
    exact = maps_and_gradients(F.conv2d, [t.double() for t in tensors], stride)
    plain = maps_and_gradients(F.conv2d, tensors, stride)
    for name, a, b, e in zip(
        ("maps", "x", "weight"), maps_and_gradients(strided_convolution, tensors, stride), plain, exact, strict=True
    ):
        assert a.dtype == b.dtype
        limit = 2 * max(relative_error(b, e), torch.finfo(a.dtype).eps / 4)
        assert relative_error(a, e) <= limit, f"{name}: {relative_error(a, e):.1e} against {limit / 2:.1e}"


def test_offsets_beyond_32_bits() -> None:
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB of free memory")
    torch.utils.deterministic.fill_uninitialized_memory = False  # the gigabytes are all written
    x = torch.zeros(33_000, 32, 32, 64, device="cuda", dtype=torch.bfloat16).permute(0, 3, 1, 2)
    assert x.numel() > 2**31
    x[-1].normal_()
    _, weight = inputs(1, torch.bfloat16, 64, 64, 32, 3)
    x.requires_grad_()
    maps = strided_convolution(x, weight, None, 9)
    grad = torch.randn(maps.shape, device="cuda").bfloat16()
    (grad_x,) = torch.autograd.grad(maps, x, grad)
    last = x[-1:].detach().clone().requires_grad_()
    expected = F.conv2d(last, weight, None, 9)
    torch.testing.assert_close(maps[-1:], expected)
    torch.testing.assert_close(grad_x[-1:], torch.autograd.grad(expected, last, grad[-1:])[0])


def primary(scale: float) -> tuple[PrimaryCapsules, Tensor]:
    layer = PrimaryCapsules(256, scale=scale).cuda().to(memory_format=torch.channels_last)
    return layer, torch.rand(16, 256, 20, 20, device="cuda").to(memory_format=torch.channels_last)


def forward_and_gradients(layer, features: Tensor) -> list[Tensor]:
    with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
        capsules = layer(features)
    parameters = [p for p in layer.parameters() if p.requires_grad]
    return [capsules.detach(), *torch.autograd.grad(capsules[..., 0].float().sum(), [features, *parameters])]


@profiles
@pytest.mark.parametrize("scale", [1.0, 1 / 32])
def test_primary_capsules_take_the_kernels_by_themselves(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, features = primary(scale)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        forward_and_gradients(layer, features.requires_grad_())
    names = {event.key for event in profile.key_averages()}
    assert {"torchcaps::strided_convolution", "torchcaps::strided_convolution_data_gradient"} <= names
    double = PrimaryCapsules(256, scale=scale).cuda().double()
    double.load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    exact = forward_and_gradients(double, features.detach().double().requires_grad_())
    fast = forward_and_gradients(layer, features)
    monkeypatch.setenv("TORCHCAPS_BACKEND", "eager")
    for a, b, e in zip(fast, forward_and_gradients(layer, features), exact, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert relative_error(a, e) <= 2 * relative_error(b, e)


@profiles
def test_float32_stays_with_the_library() -> None:
    layer, features = primary(1.0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        layer(features)
    assert not any("torchcaps::strided" in event.key for event in profile.key_averages())


@compiles
@pytest.mark.parametrize("channels_last", [True, False])
def test_compiled_as_one_graph(channels_last: bool) -> None:
    layer, features = primary(1 / 32)
    if not channels_last:
        layer, features = layer.to(memory_format=torch.contiguous_format), features.contiguous()
    features.requires_grad_()
    compiled = torch.compile(layer, fullgraph=True, dynamic=False)
    expected = forward_and_gradients(layer, features)
    for a, e in zip(forward_and_gradients(compiled, features), expected, strict=True):
        # The compiler keeps float32 between the operations after the convolution, plain PyTorch rounds each.
        assert relative_error(a, e.double()) <= 0.01


def test_a_captured_graph_follows_its_inputs() -> None:
    layer, features = primary(1 / 32)
    features.requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        forward_and_gradients(layer, features)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = forward_and_gradients(layer, features)
    with torch.no_grad():
        features.uniform_()
        layer.weight.mul_(0.5)
    graph.replay()
    for a, e in zip(captured, forward_and_gradients(layer, features), strict=True):
        assert relative_error(a, e.double()) <= 1e-3  # sums of the library's weight gradient may be in another order


@compiles
def test_compiled_with_the_compilers_own_graphs() -> None:
    layer, features = primary(1 / 32)
    features.requires_grad_()
    compiled = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    expected = forward_and_gradients(layer, features)
    for _ in range(4):  # warm-up, capture, replays
        torch.compiler.cudagraph_mark_step_begin()
        for a, e in zip(forward_and_gradients(compiled, features), expected, strict=True):
            assert relative_error(a, e.double()) <= 0.01


def relative_error(x: Tensor, exact: Tensor) -> float:
    return float((x.double() - exact).norm() / exact.norm().clamp(min=1e-30))
