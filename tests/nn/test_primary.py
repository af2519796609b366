import pytest
import torch
from torch.nn import functional as F

from torchcaps import nn, ops
from torchcaps.nn.start_values import truncated_normal_


@pytest.mark.parametrize(("padding", "scale"), [("valid", 1.0), ("valid", 1 / 3), ("same", 1.0), ("same", 0.25)])
def test_equals_loops_over_positions_and_types(padding, scale):
    """Capsule (row, column, type) is the squashed ``dim`` channels of that type at that position, nothing else."""
    layer = nn.PrimaryCapsules(2, types=3, dim=4, kernel_size=3, stride=2, padding=padding, scale=scale)
    layer.to(torch.float64)
    torch.nn.init.normal_(layer.bias)
    features = torch.randn(2, 2, 8, 11, dtype=torch.float64)
    padded = F.pad(features, (1, 1, 0, 1)) if padding == "same" else features  # the odd pixel: below
    capsules = layer(features)
    rows, columns = layer.grid_shape(8, 11)
    assert (rows, columns) == ((4, 6) if padding == "same" else (3, 5))
    assert capsules.shape == (2, rows * columns * 3, 4)
    for row in range(rows):
        for column in range(columns):
            patch = padded[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
            for kind in range(3):
                channels = slice(4 * kind, 4 * kind + 4)
                s = torch.einsum("bchw,dchw->bd", patch, layer.weight[channels]) * scale + layer.bias[channels]
                index = (row * columns + column) * 3 + kind
                torch.testing.assert_close(capsules[:, index], ops.squash(s))


def test_a_pixel_touches_only_the_capsules_that_see_it():
    layer = nn.PrimaryCapsules(1, types=2, dim=3, kernel_size=3, stride=2)
    features = torch.randn(1, 1, 9, 9)
    moved = features.clone()
    moved[0, 0, 0, 0] += 1
    changed = (layer(features) != layer(moved)).any(dim=2).squeeze(0).nonzero().flatten().tolist()
    assert changed == [0, 1]  # both types at the first position


def test_channels_last_gives_the_same_capsules():
    layer = nn.PrimaryCapsules(3, types=2, dim=4, kernel_size=3).to(memory_format=torch.channels_last)
    features = torch.randn(2, 3, 7, 7)
    torch.testing.assert_close(layer(features.to(memory_format=torch.channels_last)), layer(features))


def test_too_small_and_wrong_sizes():
    layer = nn.PrimaryCapsules(3, kernel_size=9)
    with pytest.raises(ValueError, match="8×20 feature map is too small"):
        layer.grid_shape(8, 20)
    for name in ("types", "kernel_size", "stride"):
        with pytest.raises(ValueError, match=f"{name} ≥ 1, got 0"):
            nn.PrimaryCapsules(3, **{name: 0})
    with pytest.raises(ValueError, match="'valid' or 'same'"):
        nn.PrimaryCapsules(3, padding="reflect")


def test_start_values_of_the_authors():
    layer = nn.PrimaryCapsules(64)
    assert (layer.bias == 0.1).all()
    assert layer.weight.abs().max() <= 0.2
    assert layer.weight.std().item() == pytest.approx(0.08796, rel=0.01)  # σ of a normal cut at 2σ is 0.8796 σ


def test_device_and_dtype_pass_through():
    layer = nn.PrimaryCapsules(3, device="meta", dtype=torch.float64)
    assert layer.weight.is_meta
    assert layer.weight.dtype == layer.bias.dtype == torch.float64
    assert "types=32, dim=8" in repr(layer)


def test_start_values_do_not_depend_on_the_memory_format():
    drawn = []
    for memory_format in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        weight = torch.empty(8, 4, 3, 3).to(memory_format=memory_format)
        truncated_normal_(weight, 0.1)
        drawn.append(weight)
    assert torch.equal(*drawn)
    assert drawn[0].abs().max() <= 0.2
    assert drawn[0].std() == pytest.approx(0.088, abs=0.01)  # of a normal cut off at two deviations
