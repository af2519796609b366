"""A capsule layer for Keras 3, written in ``keras.ops``: the same on the torch and the JAX backend.

``pip install torchcaps[keras]`` brings Keras; choose a backend with the environment variable ``KERAS_BACKEND`` before
the first import. Weights have the layout of :mod:`torchcaps.ops`, so they can be carried over.
"""

from __future__ import annotations

import importlib
from typing import Any

try:
    keras: Any = importlib.import_module("keras")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"torchcaps.keras needs Keras 3 and one of its backends ({error}); run pip install 'torchcaps[keras]' and set "
        "KERAS_BACKEND to torch or jax before the first import of keras"
    ) from error
ops: Any = keras.ops

__all__ = ["Capsule"]

ROUTINGS = ("dynamic", "fixed-point", "normalized")
HALF = ("float16", "bfloat16")
SQUASHES = ("paper", "half", "exponential", "unit")


@keras.saving.register_keras_serializable("torchcaps")
class Capsule(keras.layers.Layer):  # type: ignore[misc]
    r"""Every lower capsule votes for every upper one; routing by agreement decides which votes count.

    .. math:: \hat u_{j|i} = W_{ij} u_i,\quad c_{ij} = \mathrm{softmax}_j(b_{ij}),\quad
              s_j = \sum_i c_{ij} \hat u_{j|i} + \beta_j,\quad v_j = \mathrm{squash}(s_j)

    Args:
        out_capsules, out_dim: J and D.
        iterations: R of the routing; 1 is plain averaging.
        shared_weights: W_j for all i, so that any number of lower capsules fits; else W_ij.
        routing: ``"dynamic"`` adds up the agreements û·v (Sabour et al. 2017), ``"fixed-point"`` overwrites them,
            ``"normalized"`` overwrites them by û·s/‖s‖.
        squash: ``"paper"``, ``"half"``, ``"exponential"`` or ``"unit"``, as in :func:`torchcaps.ops.squash`.
        leaky: an extra logit fixed at 0 takes part in the softmax and is dropped after it.
        use_bias: learn β, which starts at 0.1.
        kernel_initializer: of W; a truncated normal of 0.1 by default, as the authors' code.

    Shape:
        ``[B, I, P]``, mask ``[B, I]`` → ``[B, J, D]``. The length of a capsule is the probability of its class.

    Example::

        import keras
        from torchcaps.keras import Capsule

        model = keras.Sequential([
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(64, 9, activation="relu"),
            keras.layers.Conv2D(64, 9, strides=2),
            keras.layers.Reshape((-1, 8)),
            Capsule(10, 16),
            # Lengths; without the small number a capsule of length 0 has no gradient on JAX.
            keras.layers.Lambda(lambda v: keras.ops.sqrt(keras.ops.sum(v * v, axis=-1) + 1e-12)),
        ])
    """

    def __init__(
        self,
        out_capsules: int,
        out_dim: int,
        iterations: int = 3,
        shared_weights: bool = False,
        routing: str = "dynamic",
        squash: str = "paper",
        leaky: bool = False,
        use_bias: bool = False,
        kernel_initializer: Any = None,
        **keywords: Any,
    ) -> None:
        super().__init__(**keywords)
        for name, value in (("out_capsules", out_capsules), ("out_dim", out_dim), ("iterations", iterations)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"Capsule needs a whole number {name} ≥ 1, got {value!r}")
        if routing not in ROUTINGS:
            raise ValueError(f"unknown routing {routing!r}; choose from {', '.join(map(repr, ROUTINGS))}")
        if squash not in SQUASHES:
            raise ValueError(f"unknown squash {squash!r}; choose from {', '.join(map(repr, SQUASHES))}")
        self.out_capsules, self.out_dim, self.iterations = out_capsules, out_dim, iterations
        self.shared_weights, self.routing, self.squash = shared_weights, routing, squash
        self.leaky, self.use_bias = leaky, use_bias
        initializer = kernel_initializer or keras.initializers.TruncatedNormal(stddev=0.1)
        self.kernel_initializer = keras.initializers.get(initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if len(input_shape) != 3 or input_shape[2] is None:
            raise ValueError(f"lower capsules must be [B, I, P], got {list(input_shape)}; a Reshape layer makes them")
        shape: tuple[int | None, ...] = (self.out_capsules, self.out_dim, input_shape[2])
        if not self.shared_weights:
            if input_shape[1] is None:
                raise ValueError(
                    "the number of lower capsules is not known; set shared_weights=True to take any number"
                )
            shape = (input_shape[1], *shape)
        fixed = {2: input_shape[2]} if self.shared_weights else {1: input_shape[1], 2: input_shape[2]}
        self.input_spec = keras.layers.InputSpec(ndim=3, axes=fixed)  # other sizes are an error that Keras words
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel")
        self.bias = None
        if self.use_bias:
            start = keras.initializers.Constant(0.1)
            self.bias = self.add_weight(shape=(self.out_capsules, self.out_dim), initializer=start, name="bias")

    def call(self, inputs: Any, mask: Any = None) -> Any:
        equation = "bip,jdp->bijd" if self.shared_weights else "bip,ijdp->bijd"
        if mask is not None:
            inputs = ops.where(mask[:, :, None], inputs, ops.zeros_like(inputs))  # a zero capsule casts zero votes
        votes = ops.einsum(equation, inputs, self.kernel)
        if keras.backend.standardize_dtype(votes.dtype) in HALF:  # a square of a sum over a thousand votes overflows
            votes = ops.cast(votes, "float32")
        logits = ops.zeros_like(votes[..., 0])
        capsules = sums = None
        for remaining in reversed(range(self.iterations)):
            sums = ops.einsum("bij,bijd->bjd", self._coupling(logits), votes)
            if self.bias is not None:
                sums = sums + self.bias
            capsules = _squash(sums, self.squash)
            if remaining:
                centre = _squash(sums, "unit") if self.routing == "normalized" else capsules
                agreement = ops.einsum("bijd,bjd->bij", votes, centre)
                logits = logits + agreement if self.routing == "dynamic" else agreement
        return ops.cast(capsules, self.compute_dtype)

    def _coupling(self, logits: Any) -> Any:
        if not self.leaky:
            return ops.softmax(logits, axis=2)
        nobody = ops.zeros_like(logits[:, :, :1])
        return ops.softmax(ops.concatenate([nobody, logits], axis=2), axis=2)[:, :, 1:]

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        """The upper capsules are all there, whatever was missing below."""
        return None

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], self.out_capsules, self.out_dim)

    def get_config(self) -> dict[str, Any]:
        names = ("out_capsules", "out_dim", "iterations", "shared_weights", "routing", "squash", "leaky", "use_bias")
        own = {name: getattr(self, name) for name in names}
        initializer = keras.initializers.serialize(self.kernel_initializer)
        return {**super().get_config(), **own, "kernel_initializer": initializer}


def _squash(s: Any, kind: str) -> Any:
    """Value and gradient of a zero vector are zero: the root is never taken of 0."""
    squared = ops.sum(ops.square(s), axis=-1, keepdims=True)
    nonzero = squared > 0
    safe = ops.where(nonzero, squared, 1.0)
    norm = ops.sqrt(safe)
    if kind in ("paper", "half"):
        scale = norm / ((1.0 if kind == "paper" else 0.5) + safe)
    elif kind == "exponential":
        scale = -ops.expm1(-norm) / norm
    else:
        scale = 1.0 / norm
    return ops.where(nonzero, scale, 0.0) * s
