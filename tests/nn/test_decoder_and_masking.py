import pytest
import torch
from torch.nn import functional

from torchcaps import nn


def test_mask_by_class_by_several_and_by_truth_values():
    capsules = torch.randn(3, 5, 4)
    one = nn.mask_classes(capsules, torch.tensor([0, 3, 4]))
    assert torch.equal(one[1, 3], capsules[1, 3])
    assert one.abs().sum(2).count_nonzero() == 3
    two = nn.mask_classes(capsules, torch.tensor([[0, 1], [3, 2], [4, 0]]))
    assert two.abs().sum(2).count_nonzero() == 6
    keep = torch.zeros(3, 5, dtype=torch.bool)
    keep[[0, 1, 2], [0, 3, 4]] = True
    assert torch.equal(nn.mask_classes(capsules, keep), one)


def test_choices():
    lengths = torch.tensor([[0.1, 0.9, 0.4], [0.8, 0.2, 0.85]])
    assert nn.longest_class(lengths).tolist() == [1, 2]
    assert nn.top_classes(lengths, 2).tolist() == [[1, 2], [2, 0]]
    with pytest.raises(ValueError, match="cannot take 4 classes out of 3"):
        nn.top_classes(lengths, 4)


def test_masking_refuses_what_does_not_fit():
    for classes in (torch.tensor([0, 1]), torch.tensor(3), torch.ones(3, 4, dtype=torch.bool), torch.ones(3, 5)):
        with pytest.raises(ValueError, match=r"or bool \[B, J\] = \[3, 5\], got torch"):
            nn.mask_classes(torch.randn(3, 5, 4), classes)


@pytest.mark.parametrize("decoder", [nn.ReconstructionDecoder, nn.ConvReconstructionDecoder])
@pytest.mark.parametrize("image_shape", [(1, 28, 28), (3, 97, 64), (2, 5, 9)])
def test_decoders_make_pictures_of_any_shape(decoder, image_shape):
    layer = decoder(4, 6, image_shape)
    pictures = layer(torch.randn(2, 4, 6), torch.tensor([1, 3]))
    assert pictures.shape == (2, *image_shape)
    assert pictures.min() >= 0
    assert pictures.max() <= 1


@pytest.mark.parametrize("decoder", [nn.ReconstructionDecoder, nn.ConvReconstructionDecoder])
def test_only_the_chosen_class_is_drawn_and_trained(decoder):
    layer = decoder(4, 6, (1, 8, 8))
    capsules = torch.randn(1, 4, 6, requires_grad=True)
    layer(capsules, torch.tensor([2])).sum().backward()
    assert capsules.grad[0, 2].abs().sum() > 0
    assert capsules.grad[0, [0, 1, 3]].abs().sum() == 0


def test_fully_connected_decoder_is_that_of_the_paper():
    layer = nn.ReconstructionDecoder(10, 16, (1, 28, 28))
    assert [tuple(linear.weight.shape) for linear in layer.layers] == [(512, 160), (1024, 512), (784, 1024)]
    assert all((linear.bias == 0.1).all() for linear in layer.layers)


def test_convolutional_decoder_doubles_and_convolves_until_the_picture_is_covered():
    layer = nn.ConvReconstructionDecoder(2, 3, (2, 11, 9), channels=32)
    capsules = torch.randn(4, 2, 3)
    x = functional.linear(capsules.flatten(1), layer.linear.weight, layer.linear.bias).relu().view(4, 32, 6, 5)
    x = x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    (convolution,) = layer.convolutions
    x = functional.conv2d(x, convolution.weight, convolution.bias, padding=1).relu()
    expected = functional.conv2d(x, layer.picture.weight, layer.picture.bias, padding=1).sigmoid()[:, :, :11, :9]
    torch.testing.assert_close(layer(capsules, torch.ones(4, 2, dtype=torch.bool)), expected)


def test_convolutional_decoder_does_not_grow_with_the_area():
    small, large = (
        sum(p.numel() for p in nn.ConvReconstructionDecoder(10, 16, (3, side, side)).parameters()) for side in (64, 512)
    )
    assert large < 1.2 * small
