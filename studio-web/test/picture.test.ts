import { describe, expect, it } from 'vitest';
import { Encoder } from '../src/maths/encoder';
import { route } from '../src/maths/routing';
import { centred } from '../src/picture/centre';
import { packStrokes, paint, paintPacked, SIDE, unpackStrokes } from '../src/picture/drawing';
import { shortened, withArticle } from '../src/picture/names';
import { added, placed, toBytes, transformed, transformValues } from '../src/picture/picture';
import { findDigit } from '../src/picture/written_digit';
import { TRANSFORMS } from '../src/state/fields';
import { expectClose, golden, goldenNames, numbers } from './golden';

describe('drawing', () => {
  const strokes = [[20, 20, 60, 30, 60, 90], [100, 100]];
  it('comes back from an address', () => expect(unpackStrokes(packStrokes(strokes))).toEqual(strokes));
  it('painted bit by bit is the same', () => {
    const steps = [[[20, 20]], [[20, 20, 60, 30]], [[20, 20, 60, 30, 60, 90]], strokes, strokes.slice(0, 1), [[9, 9, 80, 80]], []];
    for (const step of steps) expect(paintPacked(packStrokes(step))).toEqual(paint(step));
  });
  it('is white under the brush, soft at its edge, black elsewhere', () => {
    const ink = paint([[70, 20, 70, 120]]);
    expect(ink[70 * SIDE + 70]).toBe(1);
    expect(ink[70 * SIDE + 77]).toBeGreaterThan(0);
    expect(ink[70 * SIDE + 77]).toBeLessThan(1);
    expect(ink[70 * SIDE + 90]).toBe(0);
  });
  it('is centred by its mass and fits 20 of 28 pixels', () => {
    const picture = centred(paint([[10, 10, 10, 60], [10, 60, 40, 60]]), SIDE, 28, 28);
    let [total, x, y, top, bottom] = [0, 0, 0, 28, 0];
    picture.forEach((value, n) => {
      total += value;
      x += value * (n % 28);
      y += value * Math.floor(n / 28);
      if (value > 0.3) [top, bottom] = [Math.min(top, Math.floor(n / 28)), Math.max(bottom, Math.floor(n / 28))];
    });
    expect(x / total).toBeCloseTo(13.5, 0);
    expect(y / total).toBeCloseTo(13.5, 0);
    expect(bottom - top + 1).toBeGreaterThanOrEqual(18);
    expect(bottom - top + 1).toBeLessThanOrEqual(21);
  });
  it('of nothing is black', () => expect(Math.max(...centred(new Float32Array(SIDE * SIDE), SIDE, 28, 28))).toBe(0));
});

describe('a written digit', () => {
  const file = golden('written-digit');
  const names = Object.keys(file.tensors).filter((key) => key.startsWith('digit.')).map((key) => key.slice(6));
  it.each(names)('is cut out as the server does it: %s', (name) => {
    const { data, shape } = file.tensors[`picture.${name}`];
    const found = findDigit({ height: shape[0], width: shape[1], values: Float64Array.from(data as Uint8Array) }, 'auto');
    expect(found.inverted).toBe(Number(file.tensors[`inverted.${name}`].data[0]) === 1);
    const expected = file.tensors[`digit.${name}`].data as Uint8Array;
    expect(Math.max(...found.pixels.map((value, n) => Math.abs(value - expected[n])))).toBeLessThanOrEqual(1);
    expect(found.box === null).toBe(name === 'empty');
  });
});

describe('pictures', () => {
  it('are placed in the middle and moved', () => {
    const dot = Uint8Array.of(9);
    expect([...placed(dot, [1, 1, 1], [1, 3, 3])]).toEqual([0, 0, 0, 0, 9, 0, 0, 0, 0]);
    expect([...placed(dot, [1, 1, 1], [1, 3, 3], 1, -1)]).toEqual([0, 0, 9, 0, 0, 0, 0, 0, 0]);
    expect([...placed(dot, [1, 1, 1], [1, 3, 3], 5, 0)]).toEqual(Array(9).fill(0));
  });
  it('are added up to white', () => expect([...added(Uint8Array.of(200, 1), Uint8Array.of(100, 2))]).toEqual([255, 3]));
  it.each(TRANSFORMS)('%s leaves them alone in the middle of its range', (kind) => {
    const picture = Float32Array.from({ length: 49 }, (_, n) => n / 49);
    expectClose(transformed(picture, [1, 7, 7], kind, transformValues(kind, [1, 7, 7])[20]), picture);
  });
  it('turn clockwise', () => {
    const right = Float32Array.of(0, 0, 0, 0, 0, 1, 0, 0, 0);
    expectClose(transformed(right, [1, 3, 3], 'rotate', 90), Float32Array.of(0, 0, 0, 0, 0, 0, 0, 1, 0));
  });
  it('become bytes', () => expect([...toBytes(Float32Array.of(-1, 0.5, 2))]).toEqual([0, 128, 255]));
});

describe.each(goldenNames('encoder-'))('%s', (name) => {
  const file = golden(name);
  it('gives the votes and capsules of PyTorch', () => {
    const { votes, primaryLengths } = new Encoder(file, false).encode(numbers(file, 'image'), file.tensors.image.shape);
    expectClose(primaryLengths, numbers(file, 'primary_lengths'));
    expectClose(votes.values, numbers(file, 'votes'));
    expectClose(route(votes, 3)[2].outputs, numbers(file, 'capsules'));
  });
});

describe('a name', () => {
  it('that fits stays as it is', () => expect(shortened('Pullover', 8)).toBe('Pullover'));
  it('that does not ends in dots', () => expect(shortened('Ankle boot', 8)).toBe('Ankle b…'));
});

describe('a name in a sentence', () => {
  it('has the article that it is read with', () => {
    expect(['3', '8', '11', '18', '1', '100', 'Ankle boot', 'Coat'].map(withArticle)).toEqual(
      ['a 3', 'an 8', 'an 11', 'an 18', 'a 1', 'a 100', 'an Ankle boot', 'a Coat']);
  });
});
