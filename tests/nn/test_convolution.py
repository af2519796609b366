import pytest
import torch

from torchcaps.nn.convolution import PictureConv2d


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("kernel", [(9, 9), (3, 5), (4, 2), (1, 1)])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_the_product_is_the_convolution(channels, kernel, padding):
    layer = PictureConv2d(channels, 7, kernel, padding=padding, dtype=torch.float64)
    images = torch.randn(2, channels, 11, 13, dtype=torch.float64, requires_grad=True)
    results = []
    for convolve in (layer.as_product, torch.nn.Conv2d.forward.__get__(layer)):
        maps = convolve(images)
        weights = torch.linspace(-1, 1, maps.numel(), dtype=torch.float64).view_as(maps)
        results.append([maps, *torch.autograd.grad((maps * weights).sum(), (images, layer.weight, layer.bias))])
    torch.testing.assert_close(results[0], results[1])


def test_result_is_channels_last():
    maps = PictureConv2d(1, 8, 3).as_product(torch.randn(2, 1, 9, 9))
    assert maps.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.gpu
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_on_a_gpu(channels):
    layer = PictureConv2d(channels, 16, 9).cuda()
    images = torch.randn(4, channels, 28, 28, device="cuda")
    expected = torch.nn.functional.conv2d(images.double(), layer.weight.double(), layer.bias.double())
    torch.testing.assert_close(layer(images).double(), expected, rtol=1e-3, atol=1e-3)  # tf32, where it is allowed
    with torch.autocast("cuda", torch.bfloat16):
        assert layer(images).dtype == torch.bfloat16
