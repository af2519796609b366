"""The plain facts that the studio tells as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CheckpointFacts", "Config", "DecoderFacts", "ExampleFacts", "ModelFacts", "PrimaryFacts", "Problem"]


ImageShape = Annotated[list[int], Field(min_length=3, max_length=3, description="Channels, height, width.")]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())


class Problem(_Facts):
    """Why a request was not served: what was expected, what came, what to do."""

    error: str


class PrimaryFacts(_Facts):
    """The grid of lower capsules, in the order of the votes: row, column, type; ``stride`` pixels apart."""

    rows: int
    columns: int
    types: int
    dim: int
    stride: int


class DecoderFacts(_Facts):
    """``sizes`` are the widths of the fully connected layers, input first; empty for another kind."""

    kind: Literal["fully-connected", "convolutional"]
    sizes: list[int]


class CheckpointFacts(_Facts):
    """A saved state of a run; ``id`` stands in place of the model's in every path."""

    step: int
    id: str


class ModelFacts(_Facts):
    """Everything that the page has to know of a network before it asks for numbers.

    A ``capsnet`` is any network with class capsules. ``primary`` is null where no single grid of lower capsules votes
    for the classes. ``scores`` says what the lengths are: of the vectors, or activations that the routing computes in
    their place. ``normalizes`` says over what the coefficients sum to 1. ``in_page`` is true where the page's own
    loop, leaky or not, routes as the network does; ``standardized`` where the network is shown pixels that were brought
    to mean 0. In uploads ``digits`` are cut out and centred, and ink on paper is inverted where the network learned
    from ``white_on_black``. No class is there where no score is above ``presence``. ``multi`` is how many things a
    picture shows, 0 where it may be any number.
    """

    id: str
    name: str
    kind: Literal["capsnet", "cnn"]
    architecture: str
    parameters: int
    image_shape: ImageShape
    classes: list[str]
    routing: str | None
    iterations: int | None
    leaky: bool | None
    bias: bool | None
    scores: Literal["lengths", "activations"] | None
    normalizes: Literal["parents", "children", "nothing"] | None
    in_page: bool
    standardized: bool
    capsule_dim: int | None
    primary: PrimaryFacts | None
    decoder: DecoderFacts | None
    mask_input: int | None
    source: Literal["shipped", "run", "folder"]
    checkpoints: list[CheckpointFacts]
    trained_on: str | None
    test_error: float | None
    digits: bool
    white_on_black: bool
    presence: float
    multi: int
    examples: str | None


class ExampleFacts(_Facts):
    """A set of test pictures; ``indices`` only where a filter was asked for, ``files`` where those have names."""

    source: str
    name: str
    split: str
    count: int
    classes: list[str]
    image_shape: ImageShape
    sources: list[str]
    indices: list[int] | None
    files: list[str] | None
    searched: int


class Config(_Facts):
    """Read by the page first: whether a server answers, or files of an export."""

    static: bool
    version: str
    examples: list[int] | None
