import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from torchcaps import ops


def squash_by_the_book(s: torch.Tensor) -> torch.Tensor:
    squared = (s * s).sum(-1, keepdim=True)
    return squared / (1 + squared) * s / squared.sqrt()


@pytest.mark.parametrize("D", [1, 3, 16])
def test_equals_eq_1(D):
    s = torch.randn(63, D, dtype=torch.float64) * torch.logspace(-3, 3, 63, dtype=torch.float64)[:, None]
    torch.testing.assert_close(ops.squash(s), squash_by_the_book(s), rtol=1e-12, atol=0)


def test_length_is_below_one_and_direction_stays():
    s = torch.randn(100, 7, dtype=torch.float64) * torch.logspace(-6, 6, 100, dtype=torch.float64)[:, None]
    v = ops.squash(s)
    assert (v.norm(dim=1) < 1).all()
    torch.testing.assert_close(torch.nn.functional.normalize(v), torch.nn.functional.normalize(s))


def test_longer_input_gives_longer_output():
    lengths = ops.squash(torch.linspace(0.01, 50, 1000, dtype=torch.float64)[:, None]).abs().squeeze(1)
    assert (lengths.diff() > 0).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
def test_gradients(scale):
    s = (torch.randn(4, 5, dtype=torch.float64) * scale).requires_grad_()
    assert gradcheck(ops.squash, (s,))
    assert gradgradcheck(ops.squash, (s,))
    assert gradcheck(ops.capsule_lengths, (s,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1.0, 1e20])
def test_finite_values_and_gradients(dtype, size):
    size = min(size, torch.finfo(dtype).max / 2)
    s = torch.full((2, 16), size, dtype=dtype, requires_grad=True)
    v = ops.squash(s)
    (v.sum() + ops.capsule_lengths(v).sum()).backward()
    assert v.dtype == dtype
    assert v.isfinite().all()
    assert s.grad.isfinite().all()


def test_zero_maps_to_zero_with_zero_gradient():
    s = torch.zeros(3, 4, requires_grad=True)
    v = ops.squash(s)
    (gradient,) = torch.autograd.grad(v.sum(), s)
    assert (v == 0).all()
    assert (gradient == 0).all()


def test_any_dimension():
    s = torch.randn(2, 3, 5, 7)
    torch.testing.assert_close(ops.squash(s, dim=1), ops.squash(s.movedim(1, -1)).movedim(-1, 1))


LENGTHS = {
    "paper": lambda n: n**2 / (1 + n**2),
    "half": lambda n: n**2 / (0.5 + n**2),
    "exponential": lambda n: 1 - torch.exp(-n),
    "unit": torch.ones_like,
    "none": lambda n: n,
}


@pytest.mark.parametrize("kind", LENGTHS)
def test_variants_have_the_length_that_they_name(kind):
    assert set(LENGTHS) == set(ops.SQUASHES)
    s = torch.randn(63, 5, dtype=torch.float64) * torch.logspace(-3, 3, 63, dtype=torch.float64)[:, None]
    v = ops.squash(s, kind=kind)
    expected = LENGTHS[kind](s.norm(dim=1))
    torch.testing.assert_close(v.norm(dim=1), expected, rtol=1e-9, atol=0)  # 1 − exp loses digits near zero
    torch.testing.assert_close(torch.nn.functional.normalize(v), torch.nn.functional.normalize(s))
    assert gradcheck(lambda s: ops.squash(s, kind=kind), (s[20:40].clone().requires_grad_(),))
    zero = torch.zeros(2, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(ops.squash(zero, kind=kind).sum(), zero)
    assert (gradient == (1 if kind == "none" else 0)).all()
    huge = torch.full((2, 3), 1e30, requires_grad=True)
    squashed = ops.squash(huge, kind=kind)
    squashed.sum().backward()
    assert squashed.isfinite().all()
    assert huge.grad.isfinite().all()


@pytest.mark.parametrize("size", [1e-15, 1e-20, 1e-23, 1e-30, 1e-37, 1e-42])
def test_the_direction_of_a_short_vector_has_a_finite_gradient(size):
    s = (torch.tensor([3.0, 4.0]) * size).requires_grad_()
    direction = ops.squash(s, kind="unit")
    (gradient,) = torch.autograd.grad(direction, s, torch.tensor([1.0, 0.5]))
    if size < 1e-31:  # its gradient is out of range
        assert (direction == 0).all()
        assert (gradient == 0).all()
    else:
        torch.testing.assert_close(direction, torch.tensor([0.6, 0.8]))
        torch.testing.assert_close(gradient * size, torch.tensor([0.08, -0.06]), rtol=1e-4, atol=0)
    assert ops.squash(torch.tensor([float("nan"), 1.0]), kind="unit").isnan().all()


def test_an_unknown_variant_lists_the_names():
    with pytest.raises(ValueError, match="unknown squash 'round'; choose from 'paper', 'half', 'exponential', 'unit'"):
        ops.squash(torch.ones(2, 3), kind="round")


def test_integers_and_empty_capsules_are_refused():
    with pytest.raises(TypeError, match=r"call \.float\(\)"):
        ops.squash(torch.ones(2, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="at least one dimension"):
        ops.squash(torch.ones(2, 0))
