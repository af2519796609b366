/** Numbers to pixels. Orange and blue are those of Okabe and Ito. */

import type { Shape } from './picture';

export type Tint = 'grey' | 'orange' | 'blue' | 'green' | 'pair' | 'difference';
export type Colour = readonly [red: number, green: number, blue: number];

export const ORANGE: Colour = [230, 159, 0];
export const BLUE: Colour = [86, 180, 233];
export const GREEN: Colour = [0, 158, 115];
const TINTS: Partial<Record<Tint, Colour>> = { orange: ORANGE, blue: BLUE, green: GREEN };

export function render(
  values: ArrayLike<number>, shape: Shape, tint: Tint, other: ArrayLike<number> | null = null,
): ImageData {
  const [channels, height, width] = shape;
  const image = new ImageData(width, height);
  const area = height * width;
  const scale = values instanceof Uint8Array ? 1 : 255;
  const otherScale = other instanceof Uint8Array ? 1 : 255;
  for (let n = 0; n < area; n++) {
    let colour: Colour;
    if (tint === 'grey' && channels === 3) {
      colour = [scale * values[n], scale * values[area + n], scale * values[2 * area + n]];
    } else {
      const value = scale * plane(values, n, area, channels);
      if (tint === 'difference') colour = difference(value);
      else if (tint === 'pair') colour = pair(value, other ? otherScale * plane(other, n, area, channels) : 0);
      else colour = shaded(value, TINTS[tint]);
    }
    const at = 4 * n;
    image.data[at] = colour[0];
    image.data[at + 1] = colour[1];
    image.data[at + 2] = colour[2];
    image.data[at + 3] = 255;
  }
  return image;
}

function plane(values: ArrayLike<number>, n: number, area: number, channels: number): number {
  if (channels === 1) return values[n];
  let sum = 0;
  for (let channel = 0; channel < channels; channel++) sum += values[channel * area + n];
  return sum / channels;
}

function shaded(value: number, colour: Colour | undefined): Colour {
  return colour ? [(colour[0] * value) / 255, (colour[1] * value) / 255, (colour[2] * value) / 255] : [value, value, value];
}

/** Orange: the capsule drew too much; blue: it left something out. */
function difference(value: number): Colour {
  return shaded(Math.min(255, Math.abs(value)), value > 0 ? ORANGE : BLUE);
}

/** Two pictures in two colours; where both have ink it is white. */
function pair(first: number, second: number): Colour {
  const both = Math.min(first, second) / 255;
  const mix = (n: number): number => Math.min(255, (ORANGE[n] * first + BLUE[n] * second) / 255);
  return [0, 1, 2].map((n) => mix(n) * (1 - both) + 255 * both * both + mix(n) * both * (1 - both)) as unknown as Colour;
}
