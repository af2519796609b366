"""The counter-based generator: published vectors, an independent implementation, and plausible statistics."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import torch

import torchcaps.data.order
import torchcaps.data.random
from torchcaps.data.order import OrderWindow, Shuffled, epoch_order
from torchcaps.data.random import GAMMA, LANE_STEP, LANES, RandomStream, _hash_plain, hash_counter

# First outputs of SplitMix64, as its reference program prints them.
PUBLISHED = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC],
    1234567: [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ],
}
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def splitmix_by_python(key: int, counter: int, lane: int) -> int:
    """Unbounded integers and explicit remainders, no tensor in sight."""
    size = 1 << 64
    state = (key + counter * 0x9E3779B97F4A7C15 + lane * 0xC2B2AE3D27D4EB4F) % size
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % size
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % size
    return state ^ (state >> 31)


@pytest.mark.parametrize("seed", PUBLISHED)
def test_published_vectors(seed: int) -> None:
    expected = np.array(PUBLISHED[seed], dtype=np.uint64)
    got = hash_counter(torch.arange(1, len(expected) + 1), seed).squeeze(-1).numpy().view(np.uint64)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("key", [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 0x123456789ABCDEF])
def test_matches_unbounded_integers(key: int) -> None:
    counters = torch.tensor([[0, 1, 2], [60_000_000, 2**40 + 7, 2**45 - 1]])
    got = hash_counter(counters, key, lanes=3).numpy().view(np.uint64)
    expected = [[[splitmix_by_python(key, int(c), lane) for lane in range(3)] for c in row] for row in counters]
    assert got.tolist() == expected


def test_no_two_counters_and_lanes_meet() -> None:
    # (c, l) and (c′, l′) meet where (c − c′)·γ = (l′ − l)·δ mod 2⁶⁴; the nearest such c − c′ must be out of reach.
    with np.errstate(over="ignore"):
        inverse = np.uint64(pow(GAMMA % 2**64, -1, 2**64))
        apart = np.arange(1, LANES, dtype=np.uint64) * np.uint64(LANE_STEP % 2**64) * inverse
        nearest = np.minimum(apart, np.uint64(0) - apart).min()
    assert int(nearest) > 2**46


def test_number_depends_on_counter_alone_not_on_its_batch() -> None:
    stream = RandomStream(3, "test")
    whole = stream.bits(torch.arange(100), lanes=4)
    assert torch.equal(whole[17:40, :2], stream.bits(torch.arange(17, 40), lanes=2))


@pytest.mark.parametrize(("seed", "name"), [(4, "test"), (3, "other")])
def test_streams_differ(seed: int, name: str) -> None:
    counters = torch.arange(64)
    assert not (RandomStream(3, "test").bits(counters) == RandomStream(seed, name).bits(counters)).any()


@pytest.mark.parametrize("count", [2, 3, 5, 13, 1000])
def test_integers_are_uniform(count: int) -> None:
    drawn = RandomStream(0, "uniform").integers(torch.arange(200_000), count).squeeze(-1)
    seen = torch.bincount(drawn, minlength=count).double()
    assert len(seen) == count
    expected = 200_000 / count
    chi_square = float(((seen - expected) ** 2 / expected).sum())
    assert abs(chi_square - (count - 1)) < 5 * (2 * (count - 1)) ** 0.5  # five standard deviations


def test_integers_take_a_count_for_each_counter() -> None:
    count = torch.arange(1, 1001)[:, None]
    drawn = RandomStream(0, "each").integers(torch.arange(1000), count, lanes=8)
    assert bool(((drawn >= 0) & (drawn < count)).all())
    assert int(drawn.max()) > 900


def test_uniform_lanes_are_uniform_and_uncorrelated() -> None:
    lanes = RandomStream(0, "lanes").uniform(torch.arange(100_000), lanes=4)
    assert lanes.dtype == torch.float32
    assert bool(((lanes >= 0) & (lanes < 1)).all())
    assert torch.allclose(lanes.mean(0), torch.tensor(0.5), atol=0.005)
    assert torch.allclose(lanes.var(0), torch.tensor(1 / 12), atol=0.002)
    neighbours = torch.cat((lanes.T, lanes.roll(1, 0).T))  # the lanes, and the same at the counter before
    correlation = torch.corrcoef(neighbours) - torch.eye(8)
    assert float(correlation.abs().max()) < 0.016  # five standard deviations of 1/√n


def test_uniform_is_exact_in_float() -> None:
    stream = RandomStream(0, "exact")
    counters = torch.arange(1000)
    scaled = stream.uniform(counters).double() * 2**24
    assert torch.equal(scaled.long(), (stream.bits(counters) >> 40) & 0xFFFFFF)


def test_each_output_bit_is_fair() -> None:
    bits = hash_counter(torch.arange(50_000), key=99).squeeze(-1)
    share = torch.stack([((bits >> place) & 1).double().mean() for place in range(64)])
    assert float((share - 0.5).abs().max()) < 5 * 0.5 / 50_000**0.5


@pytest.mark.parametrize("lanes", [1, 2, 6])
def test_traced_without_a_break_and_to_the_same_bits(lanes: int) -> None:
    stream = RandomStream(0, "traced")
    traced = torch.compile(lambda c: stream.bits(c, lanes), backend="eager", fullgraph=True)
    counters = torch.arange(50)
    assert torch.equal(traced(counters), stream.bits(counters, lanes))


def test_too_many_lanes_are_refused() -> None:
    with pytest.raises(ValueError, match=f"1 to {LANES}"):
        hash_counter(torch.arange(2), 0, lanes=LANES + 1)


@pytest.mark.parametrize("count", [1, 2, 63, 1000])
def test_epoch_is_a_permutation(count: int) -> None:
    assert torch.equal(epoch_order(count, epoch=5, seed=1).sort().values, torch.arange(count))


def test_epoch_order_stays_what_it_is() -> None:
    assert epoch_order(8, epoch=0, seed=0).tolist() == [4, 6, 3, 5, 7, 2, 0, 1]
    orders = [epoch_order(1000, epoch, seed) for epoch, seed in ((0, 0), (1, 0), (0, 1))]
    assert all(int((a == b).sum()) < 20 for a, b in ((orders[0], orders[1]), (orders[0], orders[2])))


def test_window_refuses_a_position_that_was_not_prepared() -> None:
    window = OrderWindow(Shuffled(10, seed=0), length=10, device="cpu")
    assert torch.equal(window.rows(torch.arange(10, 20)), epoch_order(10, 1, 0))
    with pytest.raises(IndexError):
        window.rows(torch.tensor([20]))
    window.prepare(10)
    assert torch.equal(window.rows(torch.arange(20, 30)), epoch_order(10, 2, 0))
    with pytest.raises(IndexError):
        window.rows(torch.tensor([9]))


@pytest.mark.gpu
@needs_cuda
def test_same_bits_on_the_gpu() -> None:
    counters = torch.arange(-1000, 100_000) * 12_345_678_901
    for lanes in (1, 2, 5):
        on_gpu = hash_counter(counters.cuda(), 77, lanes)
        assert torch.equal(on_gpu.cpu(), hash_counter(counters, 77, lanes))
        assert torch.equal(on_gpu, _hash_plain(counters.cuda(), 77, lanes))
    assert torch.equal(epoch_order(60_000, 3, 9, "cuda").cpu(), epoch_order(60_000, 3, 9))


@pytest.mark.parametrize("module", [torchcaps.data.random, torchcaps.data.order])
def test_examples_in_the_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
