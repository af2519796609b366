import pytest
import torch

from torchcaps import nn, ops


def test_balances_differ_as_text_and_code_do():
    """Official: 0.5·(pos + 0.5·neg) for each class, mean over batch and classes; so 1/20 of Eq. 4 for 10 classes."""
    lengths, classes = torch.rand(6, 10), torch.randint(0, 10, (6,))
    pictures, images = torch.rand(6, 1, 5, 5), torch.rand(6, 1, 5, 5)
    paper = nn.CapsNetLoss("paper")(lengths, classes, pictures, images)
    official = nn.CapsNetLoss("official")(lengths, classes, pictures, images)
    present = torch.nn.functional.one_hot(classes, 10)
    positive, negative = (0.9 - lengths).clamp(min=0) ** 2, (lengths - 0.1).clamp(min=0) ** 2
    code = (0.5 * (present * positive + 0.5 * (1 - present) * negative)).mean()
    torch.testing.assert_close(official.margin, code)
    torch.testing.assert_close(official.margin * 20, paper.margin)
    torch.testing.assert_close(paper.margin, ops.margin_loss(lengths, classes))
    expected = 0.0005 * (pictures - images).square().sum() / 6
    for terms in (paper, official):
        torch.testing.assert_close(terms.reconstruction, expected)
        torch.testing.assert_close(terms.total, terms.margin + terms.reconstruction)


def test_losses_of_things_drawn_one_by_one_add_up():
    lengths, targets = torch.rand(4, 10), torch.rand(4, 10) > 0.8
    pictures, images = torch.rand(4, 2, 1, 5, 5), torch.rand(4, 2, 1, 5, 5)
    loss = nn.CapsNetLoss()
    both = loss(lengths, targets, pictures, images).reconstruction
    each = sum(loss(lengths, targets, pictures[:, k], images[:, k]).reconstruction for k in range(2))
    torch.testing.assert_close(both, each)


def test_without_decoder():
    terms = nn.CapsNetLoss()(torch.rand(4, 10), torch.randint(0, 10, (4,)))
    assert terms.reconstruction is None
    assert terms.total is terms.margin


def test_wrong_use():
    with pytest.raises(ValueError, match="'paper' or 'official'"):
        nn.CapsNetLoss("text")
    with pytest.raises(ValueError, match="pass images="):
        nn.CapsNetLoss()(torch.rand(4, 10), torch.randint(0, 10, (4,)), torch.rand(4, 1, 5, 5))


def test_the_spread_margin_grows_with_the_training():
    loss = nn.SpreadLoss(0.9, start=0.2)
    lengths, classes = torch.rand(6, 10), torch.randint(0, 10, (6,))
    torch.testing.assert_close(loss(lengths, classes).total, ops.spread_loss(lengths, classes, margin=0.9))
    for progress, margin in ((-1.0, 0.2), (0.0, 0.2), (0.5, 0.55), (1.0, 0.9), (2.0, 0.9)):
        loss.set_progress(progress)
        expected = ops.spread_loss(lengths, classes, margin=margin)
        torch.testing.assert_close(loss(lengths, classes).total, expected)
    assert not loss.state_dict()  # it follows from the step, so nothing is saved
    constant = nn.SpreadLoss(0.5)
    constant.set_progress(0.0)
    assert constant.margin_now.item() == 0.5
    with pytest.raises(ValueError, match=r"above 0 and end no lower, got 0\.95 and 0\.9"):
        nn.SpreadLoss(0.9, start=0.95)
