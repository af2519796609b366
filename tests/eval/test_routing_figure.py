import pytest
import torch

import torchcaps
from torchcaps.eval.figures.routing import routing_figure, routing_maps
from torchcaps.eval.figures.style import to_png


def small_model(**settings):
    return torchcaps.create_model("capsnet", image_shape=(1, 20, 22), conv_channels=4, primary_types=3, **settings)


def test_maps_equal_loops_over_positions():
    model, image = small_model(num_classes=4), torch.rand(1, 20, 22)
    maps = routing_maps(model, image)
    rows, columns, types = model.primary_grid
    assert maps.shape == (3, 4, rows, columns)
    lower = model.lower_capsules(image[None])
    _, trace = model.classes.trace(lower)
    for row in range(rows):
        for column in range(columns):
            first = (row * columns + column) * types
            for j in range(4):
                total = sum(trace.coefficients[2, 0, i, j] * lower[0, i].norm() for i in range(first, first + types))
                assert maps[2, j, row, column].item() == pytest.approx(total.item() / types, rel=1e-4)


def test_the_first_iteration_gives_equal_shares():
    maps = routing_maps(small_model(), torch.rand(1, 20, 22))
    torch.testing.assert_close(maps[0], maps[0, :1].expand_as(maps[0]))


@pytest.mark.parametrize("decoder", ["fc", "none"])
def test_figure_is_a_picture(decoder):
    pytest.importorskip("matplotlib")
    png = to_png(routing_figure(small_model(decoder=decoder, num_classes=3), torch.rand(1, 20, 22), ("a", "b", "c")))
    assert png.startswith(b"\x89PNG")
