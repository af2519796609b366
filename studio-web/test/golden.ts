/** Tensors that PyTorch computed; see scripts/studio_golden.py. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { floats, readTensors, type TensorFile } from '../src/maths/tensors';

const FOLDER = new URL('./golden/', import.meta.url);

export function golden(name: string): TensorFile {
  const bytes = readFileSync(new URL(`${name}.safetensors`, FOLDER));
  return readTensors(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer);
}

export function goldenNames(start: string): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.startsWith(start) && file.endsWith('.safetensors'))
    .map((file) => file.replace('.safetensors', ''))
    .sort();
}

export function numbers(file: TensorFile, name: string): Float32Array {
  return floats(file.tensors[name]);
}

/** Every number within 1e-5 of the expected one, relative for numbers above 1. */
export function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-5): void {
  expect(actual.length).toBe(expected.length);
  let worst = 0;
  for (let n = 0; n < expected.length; n++) {
    const error = Math.abs(actual[n] - expected[n]) / Math.max(1, Math.abs(expected[n]));
    worst = Math.max(worst, Number.isNaN(error) ? Infinity : error);
  }
  expect(worst).toBeLessThanOrEqual(tolerance);
}
