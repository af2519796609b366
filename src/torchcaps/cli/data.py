"""``torchcaps data``: see what there is, fetch it, check it, look at it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import PngFile, print_table, say, to_stderr

if TYPE_CHECKING:
    from torchcaps.data.augment import Augmentations
    from torchcaps.data.source import Source

__all__ = ["register"]

data_app = typer.Typer(
    name="data",
    help="List, fetch, check and look at data sets.",
    no_args_is_help=True,
    epilog="Example: torchcaps data fetch mnist && torchcaps data preview mnist --out sheet.png",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A name of `torchcaps data list`, or folder:PATH, csv:FILE, npz:FILE, idx:FOLDER."
    ),
]
KnownName = Annotated[str, typer.Argument(metavar="NAME", help="A name of `torchcaps data list`.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder to look in first and to fetch to. Else: look in TORCHCAPS_DATA and the cache, fetch to the cache.",
    ),
]
Size = Annotated[int | None, typer.Option("--size", min=1, help="Side in pixels for your own pictures.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at a picture that cannot be read instead of skipping it.")]


def register(app: typer.Typer) -> None:
    app.add_typer(data_app)


@data_app.command("list", epilog="Example: torchcaps data list --data-dir ~/data")
def list_command(data_dir: DataDir = None) -> None:
    """Show every data set known by name, and which are on this machine."""
    from rich.table import Table

    from torchcaps.data.catalog import list_sources
    from torchcaps.data.locate import locate

    table = Table("name", "what", "shape", "classes", "train", "test", "here", box=None, pad_edge=False)
    table.columns[0].no_wrap = True  # it is what one types
    for info in list_sources():
        here = "embedded" if not info.file_sets else "yes" if locate(info, data_dir) else "-"
        table.add_row(
            info.name,
            info.title,
            "×".join(map(str, info.image_shape)),
            str(info.num_classes),
            f"{info.train_count:,}",
            f"{info.test_count:,}",
            here,
        )
    print_table(table)
    say("\nYour own: folder:PATH (a subfolder a class), csv:FILE, npz:FILE, idx:FOLDER.")


@data_app.command("fetch", epilog="Example: torchcaps data fetch mnist --data-dir ~/data")
def fetch_command(name: KnownName, data_dir: DataDir = None) -> None:
    """Bring a data set to this machine and compare its checksums."""
    from torchcaps.data.registry import NotHereError, find_source, source_info

    info = source_info(name)
    try:
        located, verified = find_source(info, data_dir)
    except NotHereError as error:
        if name == "mnist":
            raise NotHereError(
                f"{error}\nUntil then the embedded sample works: torchcaps data info mnist-sample"
            ) from error
        raise
    for file, path in zip(located.file_set.files, located.paths, strict=True):
        checked = "verified" if file.name in verified.checked else "no checksum is known"
        typer.echo(f"{path}  {len(verified.contents[file.name]):,} bytes, {checked}")
    for remark in verified.remarks:
        typer.echo(f"note: {remark}")
    typer.echo(f"licence: {info.licence}")


@data_app.command("info", epilog="Example: torchcaps data info folder:my/pictures --size 32")
def info_command(name: Name, data_dir: DataDir = None, size: Size = None, strict: Strict = False) -> None:
    """Read a data set and show its shape, splits, licence, origin and how many examples each class has.

    Files that were skipped are named, and images that are there twice: under two classes, or in training and in test.
    """
    source = _load(name, data_dir, size, strict)
    _print_source(source)
    _print_repeats(source)


@data_app.command("verify", epilog="Example: torchcaps data verify mnist")
def verify_command(name: KnownName, data_dir: DataDir = None) -> None:
    """Compare checksums and counts of a data set on this machine with what is expected. Fetches nothing."""
    from torchcaps.data.registry import find_source, load, source_info
    from torchcaps.errors import DataError

    info = source_info(name)
    if info.file_sets:
        located, verified = find_source(info, data_dir, download=False)
        for file, path in zip(located.file_set.files, located.paths, strict=True):
            typer.echo(f"{path}  {'checksum right' if file.name in verified.checked else 'no checksum is known'}")
    source = load(name, data_dir=data_dir, download=False)
    found = (len(source.train), len(source.test) if source.test else 0)
    if found != (info.train_count, info.test_count) or source.image_shape != info.image_shape:
        raise DataError(
            f"{name}: expected {info.train_count:,} + {info.test_count:,} pictures of {info.image_shape}, "
            f"found {found[0]:,} + {found[1]:,} of {source.image_shape}"
        )
    typer.echo(f"{name}: {found[0]:,} + {found[1]:,} pictures, as expected")


@data_app.command("preview", epilog="Example: torchcaps data preview mnist --out sheet.png --columns 12")
def preview_command(
    name: Name,
    out: PngFile = Path("sheet.png"),
    columns: Annotated[int, typer.Option("--columns", min=1, max=100, help="Pictures a class.")] = 10,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe", help="Show one picture of each class as it is, then as training by this recipe sees it."
        ),
    ] = None,
    data_dir: DataDir = None,
    size: Size = None,
    strict: Strict = False,
) -> None:
    """Write a contact sheet of the training set, a row a class, and print how many examples each class has.

    With --recipe it shows what the recipe's augmentation makes of a picture: is it still what it was, is it softer?
    """
    import io

    from torchcaps.data.contact_sheet import as_trained_on, contact_sheet
    from torchcaps.eval.output import write_file

    augment = None if recipe is None else _augmentation(recipe)
    source = _load(name, data_dir, size, strict)
    shown = source.train if augment is None else as_trained_on(source.train, source.classes, augment, columns)
    encoded = io.BytesIO()
    contact_sheet(shown, source.classes, columns).save(encoded, format="PNG")
    write_file(out, encoded.getvalue())
    _print_source(source)
    typer.echo(f"wrote {out}")


def _augmentation(recipe: str) -> Augmentations:
    from torchcaps.data.augment import build
    from torchcaps.errors import DataError
    from torchcaps.train import load_recipe

    steps = load_recipe(recipe).data.augment
    if not steps:
        raise DataError(f"the recipe {recipe} has no data.augment to show; leave --recipe out to see the data itself")
    return build(steps)


def _load(name: str, data_dir: Path | None, size: int | None, strict: bool) -> Source:
    """Load, with warnings shown as one loud line instead of Python's own form."""
    from torchcaps.data.registry import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = load(name, data_dir=data_dir, size=size, strict=strict)
    for warning in caught:
        to_stderr(f"WARNING: {warning.message}", typer.colors.YELLOW, bold=True)
    return source


def _print_source(source: Source) -> None:
    from rich.table import Table

    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("name", source.name + (" (A SAMPLE)" if source.is_sample else ""))
    facts.add_row("shape", "×".join(map(str, source.image_shape)))
    facts.add_row("licence", source.licence)
    facts.add_row("origin", source.origin)
    facts.add_row("split", source.split_rule)
    print_table(facts)
    say("")
    table = Table("class", box=None, pad_edge=False)
    counts = {part: split.class_counts(source.num_classes) for part, split in source.splits.items()}
    for part in counts:
        table.add_column(part, justify="right")
    for index, label in enumerate(source.classes):
        table.add_row(label, *(f"{column[index]:,}" for column in counts.values()))
    table.add_row("all", *(f"{len(split):,}" for split in source.splits.values()), style="bold")
    print_table(table)
    if source.skipped:
        say(f"\n{len(source.skipped):,} skipped:")
        for line in source.skipped:
            say(f"  {line}")


def _print_repeats(source: Source) -> None:
    repeats = source.repeats
    for remark in repeats.remarks:
        to_stderr(f"WARNING: {remark}", typer.colors.YELLOW, bold=True)
    for groups, where in ((repeats.in_two_classes, "under two classes"), (repeats.in_two_splits, "in two splits")):
        if groups:
            say(f"\n{len(groups):,} images {where}:")
            for files in groups:
                say(f"  {' = '.join(files)}")
