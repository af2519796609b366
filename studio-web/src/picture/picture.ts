/** What the network is asked about: bytes, so that the address and the Python snippet hold it exactly. */

import { bilinear } from './centre';
import type { Transform } from '../state/fields';

export type Shape = readonly [channels: number, height: number, width: number];

export interface Picture {
  readonly pixels: Uint8Array;
  readonly shape: Shape;
  /** True classes; null where nobody knows them. */
  readonly labels: readonly number[] | null;
  /** How many classes a network is to name; 0: every one that it finds. */
  readonly things: number;
  /** File of a test image, where it has one. */
  readonly file: string | null;
  /** Index of the test image that this is, unchanged. */
  readonly example: number | null;
}

export function toBytes(values: Float32Array): Uint8Array {
  return Uint8Array.from(values, (value) => Math.round(255 * Math.max(0, Math.min(1, value))));
}

export function toFloats(pixels: Uint8Array): Float32Array {
  return Float32Array.from(pixels, (pixel) => pixel / 255);
}

/** One grey plane, or three of the same. */
export function spread(plane: Uint8Array, channels: number): Uint8Array {
  const pixels = new Uint8Array(plane.length * channels);
  for (let channel = 0; channel < channels; channel++) pixels.set(plane, channel * plane.length);
  return pixels;
}

/** Put a picture into the middle of another size, moved by whole pixels; black around it. */
export function placed(pixels: Uint8Array, from: Shape, to: Shape, shiftX = 0, shiftY = 0): Uint8Array {
  const result = new Uint8Array(to[0] * to[1] * to[2]);
  const top = Math.floor((to[1] - from[1]) / 2) + shiftY;
  const left = Math.floor((to[2] - from[2]) / 2) + shiftX;
  for (let channel = 0; channel < to[0]; channel++) {
    const source = Math.min(channel, from[0] - 1) * from[1] * from[2];
    for (let y = 0; y < from[1]; y++) {
      for (let x = 0; x < from[2]; x++) {
        const [row, column] = [y + top, x + left];
        if (row < 0 || column < 0 || row >= to[1] || column >= to[2]) continue;
        result[(channel * to[1] + row) * to[2] + column] = pixels[source + y * from[2] + x];
      }
    }
  }
  return result;
}

/** Two pictures added and clipped at white, as MultiMNIST is made. */
export function added(first: Uint8Array, second: Uint8Array): Uint8Array {
  return Uint8Array.from(first, (pixel, n) => Math.min(255, pixel + second[n]));
}

export const TRANSFORM_STEPS = 41;

/** The values of an affine slider; the middle one leaves the picture as it is. */
export function transformValues(kind: Transform, shape: Shape): number[] {
  const span = Array.from({ length: TRANSFORM_STEPS }, (_, n) => n / 20 - 1); // −1 … 1
  switch (kind) {
    case 'rotate':
      return span.map((t) => 180 * t);
    case 'shift-x':
      return span.map((t) => (shape[2] / 2) * t);
    case 'shift-y':
      return span.map((t) => (shape[1] / 2) * t);
    case 'scale':
      return span.map((t) => 2 ** t);
    case 'shear':
      return span.map((t) => 45 * t);
  }
}

/** Move a picture about its middle; y points down, a positive angle turns clockwise, a positive slant leans to the right. */
export function transformed(picture: Float32Array, shape: Shape, kind: Transform, value: number): Float32Array {
  const [channels, height, width] = shape;
  const angle = (value * Math.PI) / 180;
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const result = new Float32Array(picture.length);
  for (let channel = 0; channel < channels; channel++) {
    const plane = picture.subarray(channel * height * width, (channel + 1) * height * width);
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const [x, y] = [column - (width - 1) / 2, row - (height - 1) / 2];
        let [sourceX, sourceY] = [x, y];
        if (kind === 'rotate') [sourceX, sourceY] = [cosine * x + sine * y, cosine * y - sine * x];
        else if (kind === 'shift-x') sourceX = x - value;
        else if (kind === 'shift-y') sourceY = y - value;
        else if (kind === 'scale') [sourceX, sourceY] = [x / value, y / value];
        else sourceX = x + Math.tan(angle) * y;
        result[(channel * height + row) * width + column] =
          bilinear(plane, height, width, sourceX + (width - 1) / 2, sourceY + (height - 1) / 2);
      }
    }
  }
  return result;
}
