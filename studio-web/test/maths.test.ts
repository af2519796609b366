import { describe, expect, it } from 'vitest';
import { Decoder } from '../src/maths/decoder';
import { agree, coupling, entropy, route, weightedSums, type Votes } from '../src/maths/routing';
import { lengths, squash, squashedLength } from '../src/maths/squash';
import { readTensors, tensorOf, writeTensors } from '../src/maths/tensors';
import { expectClose, golden, goldenNames, numbers } from './golden';

describe('squash', () => {
  const file = golden('squash');
  const dim = file.tensors.input.shape[1];

  it('equals PyTorch', () => expectClose(squash(numbers(file, 'input'), dim), numbers(file, 'output')));
  it('gives lengths below 1', () => expectClose(lengths(squash(numbers(file, 'input'), dim), dim), numbers(file, 'lengths')));
  it('keeps a zero vector', () => expect([...squash([0, 0, 0], 3)]).toEqual([0, 0, 0]));
  it('survives huge vectors', () => expectClose(squash([3e30, 4e30], 2), [0.6, 0.8]));
  it('knows the length alone', () => {
    for (const length of [0, 0.3, 1, 5, 1e200]) {
      expect(squashedLength(length)).toBeCloseTo(length > 1e100 ? 1 : length ** 2 / (1 + length ** 2), 12);
    }
  });
});

function votesOf(name: string): Votes {
  const file = golden(name);
  const [I, J, D] = file.tensors.votes.shape;
  const bias = file.tensors.bias ? numbers(file, 'bias') : null;
  return { I, J, D, values: numbers(file, 'votes'), bias, leaky: name.includes('leaky') };
}

describe.each(goldenNames('routing-').filter((name) => name !== 'routing-2d'))('%s', (name) => {
  const file = golden(name);
  const votes = votesOf(name);
  const steps = route(votes, 5);

  it.each([1, 2, 3, 4, 5])('R = %i equals PyTorch', (R) => {
    expectClose(route(votes, R)[R - 1].outputs, numbers(file, `capsules.${R}`));
  });
  it('has the trace of PyTorch', () => {
    for (const part of ['logits', 'coefficients', 'outputs'] as const) {
      expectClose(steps.flatMap((step) => [...step[part]]), numbers(file, part));
    }
  });
  it('has its entropy', () => expectClose(steps.map((step) => entropy(step.coefficients, votes.J)), numbers(file, 'entropy')));
});

describe('the steps by hand', () => {
  const file = golden('routing-2d');
  const votes = votesOf('routing-2d');
  const [size, width] = [votes.I * votes.J, votes.J * votes.D];

  it('equal PyTorch one by one', () => {
    for (let r = 0; r < 5; r++) {
      const logits = numbers(file, 'logits').slice(r * size, (r + 1) * size);
      const coefficients = coupling(logits, votes.J);
      expectClose(coefficients, numbers(file, 'coefficients').slice(r * size, (r + 1) * size));
      const sums = weightedSums(votes, coefficients);
      expectClose(sums, numbers(file, 'sums').slice(r * width, (r + 1) * width));
      const outputs = squash(sums, votes.D);
      expectClose(outputs, numbers(file, 'outputs').slice(r * width, (r + 1) * width));
      expectClose(agree(votes, new Float32Array(size), outputs), numbers(file, 'agreement').slice(r * size, (r + 1) * size));
    }
  });
});

describe('decoder', () => {
  it('equals PyTorch', () => {
    const file = golden('decoder');
    const decoder = new Decoder(file);
    const [B, J, D] = file.tensors.capsules.shape;
    const pictures = Array.from({ length: B }, (_, b) => {
      const j = Number(file.tensors.classes.data[b]);
      return [...decoder.draw(numbers(file, 'capsules').slice((b * J + j) * D, (b * J + j + 1) * D), j)];
    });
    expectClose(pictures.flat(), numbers(file, 'pictures'));
  });
});

describe('tensors', () => {
  it('come back as they were written', () => {
    const pixels = Uint8Array.of(0, 128, 255);
    const file = readTensors(writeTensors({ pixels: tensorOf(pixels, 3), odd: tensorOf(Float32Array.of(0.5), 1, 1) }));
    expect(file.tensors.pixels.data).toEqual(pixels);
    expect(file.tensors.odd).toEqual({ shape: [1, 1], data: Float32Array.of(0.5) });
  });
  it('refuse a broken file in words', () => {
    expect(() => readTensors(new ArrayBuffer(3))).toThrow('at least 8 bytes');
    expect(() => readTensors(Uint8Array.of(255, 0, 0, 0, 0, 0, 0, 0).buffer)).toThrow('longer than the file');
  });
});
