import pytest
import torch

from torchcaps import ops


def margin_loss_by_loops(lengths, present):
    total = 0.0
    for row, labels in zip(lengths.tolist(), present.tolist(), strict=True):
        for length, label in zip(row, labels, strict=True):
            total += label * max(0, 0.9 - length) ** 2 + 0.5 * (1 - label) * max(0, length - 0.1) ** 2
    return total / len(lengths)


def test_margin_loss_equals_eq_4_for_one_and_for_several_classes():
    lengths = torch.rand(7, 11, dtype=torch.float64)
    classes = torch.randint(0, 11, (7,))
    one_hot = torch.nn.functional.one_hot(classes, 11)
    several = torch.rand(7, 11) > 0.5
    assert ops.margin_loss(lengths, classes).item() == pytest.approx(margin_loss_by_loops(lengths, one_hot), rel=1e-12)
    assert ops.margin_loss(lengths, one_hot).item() == ops.margin_loss(lengths, classes).item()
    assert ops.margin_loss(lengths, several).item() == pytest.approx(margin_loss_by_loops(lengths, several.long()))


def test_two_dimensions_are_multi_hot_also_where_class_numbers_have_the_same_shape():
    pair, lengths = torch.tensor([[1, 0]]), torch.tensor([[0.9, 0.1]])
    assert ops.margin_loss(lengths, pair).item() == 0  # the first class is there, the second is not
    assert ops.margin_loss(lengths, ops.multi_hot(pair, 2)).item() == pytest.approx(0.8**2)  # both are


def test_margin_loss_is_a_sum_over_classes():
    """Not a mean: with everything at 0.9 and label 0, nine wrong classes cost 0.5 · 0.8² each."""
    assert ops.margin_loss(torch.full((2, 10), 0.9), torch.zeros(2, dtype=torch.int64)).item() == pytest.approx(2.88)


def test_reconstruction_loss_is_a_sum_over_pixels():
    pictures, images = torch.rand(3, 2, 5, 7), torch.rand(3, 2, 5, 7)
    expected = 0.0005 * sum((p - q) ** 2 for p, q in zip(pictures.flatten(), images.flatten(), strict=True)) / 3
    assert ops.reconstruction_loss(pictures, images).item() == pytest.approx(expected.item(), rel=1e-5)


def test_reductions():
    lengths, classes = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])
    each = ops.margin_loss(lengths, classes, reduction="none")
    assert each.shape == (4,)
    assert ops.margin_loss(lengths, classes, reduction="sum").item() == pytest.approx(each.sum().item())
    assert ops.margin_loss(lengths, classes).item() == pytest.approx(each.mean().item())
    assert ops.margin_loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)).item() == 0
    with pytest.raises(ValueError, match="'mean', 'sum' or 'none'"):
        ops.margin_loss(lengths, classes, reduction="avg")


def test_multi_hot():
    expected = torch.tensor([[1.0, 0, 1], [0, 1, 1]])
    assert torch.equal(ops.multi_hot(torch.tensor([[0, 2], [2, 1]]), 3), expected)


@pytest.mark.parametrize(
    ("lengths", "targets", "words"),
    [
        (torch.rand(2, 3, 4), torch.zeros(2, dtype=torch.int64), r"activations must be \[B, J\], got \[2, 3, 4\]"),
        (torch.rand(2, 3), torch.tensor([0, 3]), r"must lie in 0 … 2"),
        (torch.rand(2, 3), torch.tensor([-1, 0]), r"must lie in 0 … 2"),
        (torch.rand(2, 3), torch.zeros(3, dtype=torch.int64), "as many targets"),
        (torch.rand(2, 3), torch.zeros(2, 4), "as many targets"),
    ],
)
def test_margin_loss_refuses_what_does_not_fit(lengths, targets, words):
    with pytest.raises(ValueError, match=words):
        ops.margin_loss(lengths, targets)


@pytest.mark.parametrize("loss", [ops.margin_loss, ops.spread_loss])
def test_gradients_of_single_examples(loss):
    lengths, classes = torch.rand(4, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 2])
    single = torch.func.vmap(torch.func.grad(lambda length, number: loss(length[None], number[None])))
    together = torch.func.grad(lambda all_lengths: loss(all_lengths, classes, reduction="sum"))
    torch.testing.assert_close(single(lengths, classes), together(lengths))


def test_class_numbers_must_be_integers():
    with pytest.raises(TypeError, match="integers"):
        ops.margin_loss(torch.rand(2, 3), torch.rand(2))


def test_reconstruction_must_have_the_shape_of_the_images():
    with pytest.raises(ValueError, match=r"\[2, 1, 28, 28\]"):
        ops.reconstruction_loss(torch.rand(2, 784), torch.rand(2, 1, 28, 28))


def test_spread_loss_by_the_book():
    activations = torch.rand(6, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 4, 2, 2, 1, 3])
    expected = torch.zeros(6, dtype=torch.float64)
    for b, true in enumerate(targets.tolist()):
        for other in range(5):
            if other != true:
                expected[b] += (
                    max(0.0, 0.5 - float(activations.detach()[b, true] - activations.detach()[b, other])) ** 2
                )
    torch.testing.assert_close(ops.spread_loss(activations, targets, margin=0.5, reduction="none"), expected)
    assert torch.autograd.gradcheck(lambda a: ops.spread_loss(a, targets), (activations,))
    several = ops.multi_hot(torch.tensor([[0, 1]]), 3)
    lead = torch.tensor([[0.9, 0.5, 0.1]])
    torch.testing.assert_close(ops.spread_loss(lead, several), torch.tensor(0.1**2 + 0.5**2))
    with pytest.raises(ValueError, match="as many targets"):
        ops.spread_loss(lead, torch.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"must be \[B, J\]"):
        ops.spread_loss(lead[0], torch.tensor([1]))
