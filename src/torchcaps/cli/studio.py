"""``torchcaps studio``: look inside a capsule network in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from torchcaps.cli.shared import say, warn

if TYPE_CHECKING:
    from torchcaps.studio import Catalogue

__all__ = ["register"]

START = "start"
FIRST = ("capsnet-mnist", "capsnet-multimnist")  # of the shipped weights

Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        help="Run folders (also while they train), model folders, shipped names or hub names. Left out: the shipped "
        "weights.",
    ),
]
DataName = Annotated[
    str | None, typer.Option("--data", metavar="NAME", help="Test pictures, as for `torchcaps evaluate`.")
]
Compare = Annotated[
    bool,
    typer.Option("--compare/--no-compare", help="Show a shipped CNN beside models of its classes, if none is one."),
]


class _StartsByDefault(TyperGroup):
    """``torchcaps studio runs/mine`` is ``torchcaps studio start runs/mine``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [START, *args]
        return super().parse_args(ctx, args)


studio_app = typer.Typer(
    cls=_StartsByDefault, help="Look inside capsule networks in the browser.", rich_markup_mode="markdown"
)


def register(app: typer.Typer) -> None:
    app.add_typer(studio_app, name="studio")


@studio_app.command(START)
def start(
    models: Models = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to answer at; any but a loopback address lets others in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: 8765, or a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    data: DataName = None,
    compare: Compare = True,
) -> None:
    """Open a page on which to draw, move capsule vectors, step through the routing, and see what happens.

    It answers to this machine only, reads nothing but the models and data named here, and writes nothing.
    `torchcaps studio export` writes a site of it that needs no Python.

    **Examples**

        torchcaps studio

        torchcaps studio runs/demo-seed0

        torchcaps studio runs/demo-seed0 runs/cnn --port 9000 --no-browser --data mnist

        torchcaps studio export site runs/demo-seed0
    """
    from torchcaps.studio.addresses import is_loopback
    from torchcaps.studio.server import serve

    catalogue = _catalogue(models or [], data, compare)
    if not is_loopback(host):
        warn(f"{host} is not a loopback address: everybody in the network can open the studio and use it")
    serve(catalogue, host, port, browser, say)


@studio_app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the site.")],
    models: Models = None,
    examples: Annotated[int, typer.Option("--examples", min=2, max=1000, help="How many test pictures.")] = 20,
    data: DataName = None,
    compare: Compare = True,
) -> None:
    """Write the studio as files that any file server can show.

    **Examples**

        torchcaps studio export site

        torchcaps studio export site runs/demo-seed0 --examples 10
    """
    from torchcaps.studio.export import export_site

    size = export_site(_catalogue(models or [], data, compare), folder, examples, say)
    say(f"wrote {folder}: {size / 1e6:.1f} MB; show it with: python -m http.server --directory {folder}")


def _catalogue(models: list[str], data: str | None, compare: bool) -> Catalogue:
    try:
        from torchcaps.studio.catalogue import Catalogue
    except ImportError as error:
        from torchcaps.errors import TorchcapsError

        raise TorchcapsError('the studio needs more libraries; pip install "torchcaps[studio]"') from error
    from torchcaps.data.catalog.digits import DIGITS, FASHION_MNIST
    from torchcaps.eval.recipe_facts import check_data_name
    from torchcaps.models import list_pretrained

    if data is not None:
        check_data_name(data)
    shipped = list_pretrained()
    capsules = sorted(list_pretrained("caps*"), key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    catalogue = Catalogue(models or capsules, data)
    facts = catalogue.facts()
    if compare and all(model.kind != "cnn" for model in facts):
        published = [model for model in facts if ":" not in (model.trained_on or "")]
        shown = {tuple(model.classes) for model in published if model.image_shape == [1, 28, 28]}
        for classes, plain in ((DIGITS, "cnn-mnist"), (FASHION_MNIST.classes, "cnn-fashion")):
            if classes in shown and plain in shipped:
                catalogue.add(plain)
    for remark in catalogue.remarks:
        warn(remark)
    return catalogue
