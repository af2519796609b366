"""The fused kernels against the ground truth: on a GPU as they are, elsewhere in Triton's interpreter.

The interpreter must be chosen before Triton is imported, so without a GPU one test runs this file once more in a
process of its own; the whole grid of sizes is ``python -m benchmarks.routing_check``, on a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from torchcaps import ops
from torchcaps.ops.routing import backends
from torchcaps.ops.routing.triton import supports

pytest.importorskip("triton", reason="Triton is not installed, so the fused kernels cannot run")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ON_GPU = torch.cuda.is_available() and not INTERPRETED
DEVICE = "cuda" if ON_GPU else "cpu"
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
    B: int = 3  # the interpreter takes its time for every example
    I: int = 9
    J: int = 3
    D: int = 4
    P: int = 6
    R: int = 3
    dtype: torch.dtype = torch.float32
    shared: bool = False
    leaky: bool = False
    bias: bool = True
    gradient: str = "all"
    centre: str = "sum"
    sharpness: float = 1.0

    def inputs(self, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        shape = (self.J, self.D, self.P) if self.shared else (self.I, self.J, self.D, self.P)
        tensors = [
            torch.randn(self.B, self.I, self.P, generator=generator),
            1.5 / (self.D * self.P) ** 0.5 * torch.randn(shape, generator=generator),
        ]
        if self.bias:
            tensors.append(0.3 * torch.randn(self.J, self.D, generator=generator))
        return [x.to(DEVICE, self.dtype) for x in tensors]

    def run(self, inputs: list[Tensor], backend: str, dtype: torch.dtype | None = None) -> list[Tensor]:
        """Capsules and every gradient."""
        leaves = [x.detach().to(dtype or x.dtype).requires_grad_() for x in inputs]
        bias = leaves[2] if self.bias else None
        how = {"gradient": self.gradient, "centre": self.centre, "sharpness": self.sharpness}
        capsules = ops.capsule_linear(leaves[0], leaves[1], self.R, bias, self.leaky, backend, **how)
        grad = torch.randn(capsules.shape, generator=torch.Generator().manual_seed(7)).to(DEVICE, inputs[0].dtype)
        return [capsules.detach(), *torch.autograd.grad(capsules, leaves, grad.to(capsules.dtype))]


CASES = [
    Case(),
    Case(B=4, I=1, J=3, R=5),
    Case(B=33, I=9, J=2, D=16, P=8, R=2),  # more than one tile each way
    Case(J=2, D=24, P=8, shared=True, leaky=True, R=2),  # several tiles add into one shared weight
    Case(P=32, J=5, I=3, bias=False, R=2),
    Case(leaky=True, gradient="last"),
    Case(J=1, R=5),
    Case(J=1, R=2, leaky=True),
    Case(R=1, I=20),
    Case(dtype=torch.float16, R=2),
    Case(dtype=torch.bfloat16, R=2, shared=True),
    Case(R=4, centre="capsule"),
    Case(B=33, I=9, J=2, D=16, P=8, R=2, centre="capsule", leaky=True),
    Case(R=4, centre="direction"),
    Case(R=3, centre="direction", sharpness=5.0, bias=False),
    Case(dtype=torch.bfloat16, R=3, centre="direction", shared=True),
    Case(R=3, centre="capsule", gradient="last"),
    Case(R=2, centre="total", sharpness=0.7),
    Case(B=33, I=9, J=2, D=16, P=8, R=2, centre="total", leaky=True, sharpness=0.2),
]


@needs_kernels
@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_at_most_twice_those_of_plain_pytorch(case: Case) -> None:
    assert torch.empty(3).isnan().all()  # so that an element nobody writes cannot pass
    inputs = case.inputs()
    exact = case.run(inputs, "naive", torch.float64)
    plain, fused = case.run(inputs, "eager"), case.run(inputs, "triton")
    # Not below one unit in the last place of a float32 sum, and the rounding of the result.
    one_rounding = max(torch.finfo(torch.float32).eps, torch.finfo(case.dtype).eps / 4)
    for name, a, b, e in zip(("capsules", "u", "weight", "bias"), fused, plain, exact, strict=False):
        assert a.dtype == case.dtype
        limit = 2 * max(relative_error(b, e), one_rounding)
        assert relative_error(a, e) <= limit, f"{name}: {relative_error(a, e):.1e} against {limit / 2:.1e}"


@needs_kernels
@pytest.mark.parametrize(
    "case",
    [
        Case(bias=False),
        Case(B=33, I=5, J=2, D=16, P=8, bias=False),
        Case(J=1, bias=False),
        Case(dtype=torch.bfloat16, bias=False),
        Case(dtype=torch.float16, shared=True, bias=False),
    ],
    ids=str,
)
def test_self_attention_has_errors_at_most_twice_those_of_plain_pytorch(case: Case) -> None:
    inputs = [*case.inputs(), torch.randn(case.I, case.J, generator=torch.Generator().manual_seed(3)).to(DEVICE)]
    grad = torch.randn(case.B, case.J, case.D, generator=torch.Generator().manual_seed(7)).to(DEVICE, case.dtype)

    def run(backend: str, dtype: torch.dtype) -> list[Tensor]:
        leaves = [x.detach().to(torch.promote_types(x.dtype, dtype)).requires_grad_() for x in inputs]
        capsules = ops.self_attention_linear(*leaves, backend=backend)
        return [capsules.detach(), *torch.autograd.grad(capsules, leaves, grad.to(capsules.dtype))]

    exact, plain, fused = run("naive", torch.float64), run("eager", case.dtype), run("triton", case.dtype)
    one_rounding = max(torch.finfo(torch.float32).eps, torch.finfo(case.dtype).eps / 4)
    for name, a, b, e in zip(("capsules", "u", "weight", "priors"), fused, plain, exact, strict=True):
        assert relative_error(a, e) <= 2 * max(relative_error(b, e), one_rounding), name


@needs_kernels
def test_a_mask_is_the_same_as_leaving_capsules_out() -> None:
    u, weight, bias = Case().inputs()
    keep = torch.tensor([True, False, True, True, False, True, True, True, False], device=DEVICE)
    masked = ops.capsule_linear(u, weight, bias=bias, backend="triton", mask=keep)
    torch.testing.assert_close(masked, ops.capsule_linear(u[:, keep], weight[keep], bias=bias, backend="triton"))


@needs_kernels
def test_the_same_bits_every_time() -> None:
    case = Case(R=2)
    for a, b in zip(case.run(case.inputs(), "triton"), case.run(case.inputs(), "triton"), strict=True):
        assert torch.equal(a, b)


@needs_kernels
def test_views_and_expanded_gradients() -> None:
    u, weight, bias = Case().inputs()
    strided = u.transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    ops.capsule_linear(strided, weight, bias=bias, backend="triton").sum().backward()  # the gradient is one number
    plain = u.clone().requires_grad_()
    ops.capsule_linear(plain, weight, bias=bias, backend="eager").sum().backward()
    torch.testing.assert_close(strided.grad, plain.grad, rtol=1e-4, atol=1e-6)


@needs_kernels
def test_zero_input_has_a_finite_gradient_and_an_empty_batch_works() -> None:
    case = Case(bias=False)
    zero, weight = (torch.zeros_like(x) for x in case.inputs())
    for centre in ("sum", "capsule", "direction"):
        assert all(bool(x.isfinite().all()) for x in replace(case, centre=centre).run([zero, weight], "triton"))
    capsules, grad_u, grad_weight = case.run([zero[:0], weight], "triton")
    assert (capsules.shape, grad_u.shape) == ((0, 3, 4), (0, 9, 6))
    assert not grad_weight.any()


@needs_kernels
def test_registration_and_whole_graph_compilation() -> None:
    leaves = [x.requires_grad_() for x in Case(B=2, I=2, J=2, R=2).inputs()]
    torch.library.opcheck(torch.ops.torchcaps.route.default, (*leaves, 2, False, "all", "sum", 1.0, True))
    torch.library.opcheck(torch.ops.torchcaps.route.default, (*leaves, 2, False, "all", "total", 3.0, False))

    def function(u: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return ops.capsule_linear(u, weight, 2, bias, backend="triton")

    compiled = torch.compile(function, fullgraph=True, backend="inductor" if ON_GPU else "aot_eager")
    results = []
    for call in (function, compiled):
        capsules = call(*leaves)
        results.append([capsules, *torch.autograd.grad(capsules.square().sum(), leaves)])
    torch.testing.assert_close(results[0], results[1])


@needs_kernels
@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a CUDA device")
def test_a_captured_graph_follows_its_inputs() -> None:
    case = Case(B=64, I=100, J=10, D=16, P=8, dtype=torch.bfloat16)
    static = case.inputs()
    case.run(static, "auto")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    leaves = [x.requires_grad_() for x in static]
    grad = torch.ones(64, 10, 16, device=DEVICE, dtype=torch.bfloat16)
    with torch.cuda.graph(graph):
        capsules = ops.capsule_linear(leaves[0], leaves[1], 3, leaves[2])
        gradients = torch.autograd.grad(capsules, leaves, grad)
    fresh = case.inputs(seed=1)
    with torch.no_grad():
        for x, y in zip(static, fresh, strict=True):
            x.copy_(y)
    graph.replay()
    again = [x.detach().requires_grad_() for x in fresh]
    expected = ops.capsule_linear(again[0], again[1], 3, again[2])
    torch.testing.assert_close([capsules, *gradients], [expected, *torch.autograd.grad(expected, again, grad)])


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a CUDA device")
def test_a_gpu_takes_the_fused_kernels_by_itself() -> None:
    u, weight, _ = Case().inputs()
    assert ops.explain_backend(u, weight=weight).startswith("triton")
    assert ops.explain_backend(u.double()).startswith("eager")


def test_the_reason_is_given_and_the_warning_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_warned", set())
    u, weight = torch.randn(2, 3, 70), torch.randn(3, 2, 4, 70)
    able, reason = supports(u, weight)
    assert not able
    assert ("P = 70" in reason) or ("TRITON_INTERPRET" in reason)
    with pytest.warns(UserWarning, match="plain PyTorch does"):
        capsules = ops.capsule_linear(u, weight, backend="triton")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(capsules, ops.capsule_linear(u, weight, backend="triton"))
        assert ops.explain_backend(u, "triton", weight).startswith("eager")


@pytest.mark.parametrize(("change", "reason"), [({"J": 300}, "J = 300"), ({"D": 65}, "D = 65"), ({"P": 65}, "P = 65")])
def test_sizes_beyond_the_kernels_are_refused(
    change: dict[str, int], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # leaves only the sizes as a reason
    case = Case(B=1, I=1, **change)
    u, weight, _ = (x.cpu() for x in case.inputs())
    assert supports(u, weight) == (False, f"{reason} is above {reason_limit(change)}")
    assert supports(u.double(), weight)[1].startswith("torch.float64")


def reason_limit(change: dict[str, int]) -> int:
    return 256 if "J" in change else 64


def relative_error(x: Tensor, exact: Tensor) -> float:
    return float((x.double() - exact).norm() / exact.norm().clamp(min=1e-30))
