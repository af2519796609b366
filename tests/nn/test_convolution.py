import pytest
import torch

from torchcaps.nn.convolution import PictureConv2d, WholeMapConv2d


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("kernel", [(9, 9), (3, 5), (4, 2), (1, 1)])
@pytest.mark.parametrize(
    "settings",
    [dict(padding="valid"), dict(padding="same"), dict(padding=(2, 0), stride=(1, 3)), dict(stride=2, bias=False)],
)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_the_product_is_the_convolution(channels, kernel, settings):
    layer = PictureConv2d(channels, 7, kernel, dtype=torch.float64, **settings)
    images = torch.randn(2, channels, 11, 13, dtype=torch.float64, requires_grad=True)
    results = []
    for convolve in (layer.as_product, torch.nn.Conv2d.forward.__get__(layer)):
        maps = convolve(images)
        weights = torch.linspace(-1, 1, maps.numel(), dtype=torch.float64).view_as(maps)
        results.append([maps, *torch.autograd.grad((maps * weights).sum(), (images, *layer.parameters()))])
    torch.testing.assert_close(results[0], results[1])


def test_result_is_channels_last():
    maps = PictureConv2d(1, 8, 3).as_product(torch.randn(2, 1, 9, 9))
    assert maps.is_contiguous(memory_format=torch.channels_last)


def test_autocast_leaves_float64_alone():
    layer, images = PictureConv2d(1, 8, 3).double(), torch.randn(2, 1, 9, 9, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer.as_product(images).dtype == torch.float64
        assert layer.float().as_product(images.float()).dtype == torch.bfloat16


def test_settings_that_are_no_plain_product_are_left_to_the_library():
    for settings in (dict(dilation=2), dict(groups=2), dict(padding=1, padding_mode="reflect")):
        assert not PictureConv2d(2, 8, 3, **settings)._is_plain
    assert PictureConv2d(2, 8, 3, stride=2, padding=1)._is_plain


def test_a_kernel_as_large_as_the_map_is_a_weighted_sum():
    layer = WholeMapConv2d(6, (5, 4)).double()
    maps = torch.randn(3, 6, 5, 4, dtype=torch.float64, requires_grad=True)
    results = []
    for convolve in (layer, torch.nn.Conv2d.forward.__get__(layer)):
        sums = convolve(maps)
        weights = torch.linspace(-1, 1, 18, dtype=torch.float64).view_as(sums)
        results.append([sums, *torch.autograd.grad((sums * weights).sum(), (maps, *layer.parameters()))])
    torch.testing.assert_close(results[0], results[1])
    assert layer.bfloat16()(maps.detach().bfloat16()).dtype == torch.float32  # what is summed up is not rounded


@pytest.mark.gpu
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_on_a_gpu(channels):
    layer = PictureConv2d(channels, 16, 9).cuda()
    images = torch.randn(4, channels, 28, 28, device="cuda")
    expected = torch.nn.functional.conv2d(images.double(), layer.weight.double(), layer.bias.double())
    torch.testing.assert_close(layer(images).double(), expected, rtol=1e-3, atol=1e-3)  # tf32, where it is allowed
    with torch.autocast("cuda", torch.bfloat16):
        assert layer(images).dtype == torch.bfloat16
