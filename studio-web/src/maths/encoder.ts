/** From a picture to votes: convolutions, primary capsules (squashed), W_ij. Used where no server answers. */

import type { Votes } from './routing';
import { lengths, squash } from './squash';
import { floats, type TensorFile } from './tensors';

const LANES = 4;

interface Map {
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  readonly values: Float32Array;
}

interface Kernel {
  readonly outputs: number;
  readonly size: number;
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

export interface Encoded {
  readonly votes: Votes;
  /** ‖u_i‖, [I]. */
  readonly primaryLengths: Float32Array;
}

export class Encoder {
  private readonly convolutions: Kernel[] = [];
  private readonly primary: Kernel;
  private readonly classes: { weight: Float32Array; shared: boolean; J: number; D: number; P: number };
  private readonly bias: Float32Array | null;
  private readonly scale: number;
  private readonly stride: number;
  private readonly padding: string;

  constructor(
    file: TensorFile,
    private readonly leaky: boolean,
  ) {
    const { tensors, metadata } = file;
    const kernel = (name: string): Kernel => {
      const weight = tensors[`${name}.weight`];
      const [outputs, , size] = weight.shape;
      return { outputs, size, weight: floats(weight), bias: floats(tensors[`${name}.bias`]) };
    };
    for (let n = 0; tensors[`conv.${n}.weight`]; n++) this.convolutions.push(kernel(`conv.${n}`));
    this.primary = kernel('primary');
    const weight = tensors['classes.weight'];
    const [J, D, P] = weight.shape.slice(-3);
    this.classes = { weight: floats(weight), shared: weight.shape.length === 3, J, D, P };
    this.bias = tensors['classes.bias'] ? floats(tensors['classes.bias']) : null;
    this.scale = Number(metadata.primary_scale ?? 1);
    this.stride = Number(metadata.primary_stride ?? 2);
    this.padding = metadata.padding ?? 'valid';
  }

  encode(image: Float32Array, shape: readonly number[]): Encoded {
    const [channels, height, width] = shape;
    let features: Map = { channels, height, width, values: image };
    for (const kernel of this.convolutions) {
      features = convolve(features, kernel, 1, 1, this.padding);
      for (let n = 0; n < features.values.length; n++) features.values[n] = Math.max(0, features.values[n]);
    }
    const maps = convolve(features, this.primary, this.stride, this.scale, this.padding);
    const { J, D, P } = this.classes;
    const types = maps.channels / P;
    const positions = maps.height * maps.width;
    const lower = new Float32Array(maps.values.length); // [position, type, P]
    for (let position = 0; position < positions; position++) {
      for (let channel = 0; channel < maps.channels; channel++) {
        lower[position * maps.channels + channel] = maps.values[channel * positions + position];
      }
    }
    const u = squash(lower, P);
    const votes: Votes = {
      I: positions * types,
      J,
      D,
      values: this.vote(u, positions * types),
      bias: this.bias,
      leaky: this.leaky,
    };
    return { votes, primaryLengths: lengths(u, P) };
  }

  /** Eq. 2: û_{j|i} = W_ij u_i. */
  private vote(u: Float32Array, I: number): Float32Array {
    const { weight, shared, J, D, P } = this.classes;
    const votes = new Float32Array(I * J * D);
    for (let i = 0; i < I; i++) {
      const own = shared ? 0 : i * J * D * P;
      for (let n = 0; n < J * D; n++) {
        let sum = 0;
        for (let p = 0; p < P; p++) sum += weight[own + n * P + p] * u[i * P + p];
        votes[i * J * D + n] = sum;
      }
    }
    return votes;
  }
}

/** Padding before the first pixel: the odd one goes below and to the right. */
function padBefore(size: number, kernel: number, stride: number, padding: string): [before: number, outputs: number] {
  if (padding !== 'same') return [0, Math.floor((size - kernel) / stride) + 1];
  const outputs = Math.ceil(size / stride);
  return [Math.floor(Math.max(0, (outputs - 1) * stride + kernel - size) / 2), outputs];
}

/** Convolution as a matrix product of patches; the scale stands before the bias. */
function convolve(input: Map, kernel: Kernel, stride: number, scale: number, padding: string): Map {
  const [top, height] = padBefore(input.height, kernel.size, stride, padding);
  const [left, width] = padBefore(input.width, kernel.size, stride, padding);
  const positions = height * width;
  const depth = input.channels * kernel.size * kernel.size;
  const patches = new Float32Array((positions + LANES) * depth); // a few empty ones at the end: no remainder to treat
  for (let position = 0; position < positions; position++) {
    const [y, x] = [Math.floor(position / width) * stride - top, (position % width) * stride - left];
    copyPatch(input, y, x, kernel.size, patches, position * depth);
  }
  const values = new Float32Array(kernel.outputs * positions);
  const { weight } = kernel;
  for (let output = 0; output < kernel.outputs; output++) {
    const first = output * depth;
    const bias = kernel.bias[output];
    for (let position = 0; position < positions; position += LANES) {
      let [a, b, c, d] = [0, 0, 0, 0]; // LANES sums at once: each weight is read for all of them
      const p = position * depth;
      for (let k = 0; k < depth; k++) {
        const w = weight[first + k];
        a += w * patches[p + k];
        b += w * patches[p + depth + k];
        c += w * patches[p + 2 * depth + k];
        d += w * patches[p + 3 * depth + k];
      }
      const sums = [a, b, c, d];
      for (let lane = 0; lane < LANES && position + lane < positions; lane++) {
        values[output * positions + position + lane] = sums[lane] * scale + bias;
      }
    }
  }
  return { channels: kernel.outputs, height, width, values };
}

/** The pixels under a kernel whose corner is at (y, x); zeros outside. */
function copyPatch(input: Map, y: number, x: number, size: number, patches: Float32Array, at: number): void {
  for (let channel = 0; channel < input.channels; channel++) {
    for (let ky = 0; ky < size; ky++) {
      const row = y + ky;
      for (let kx = 0; kx < size; kx++, at++) {
        const column = x + kx;
        if (row < 0 || column < 0 || row >= input.height || column >= input.width) continue;
        patches[at] = input.values[(channel * input.height + row) * input.width + column];
      }
    }
  }
}
