/** A drawing is a list of strokes; the soft brush is computed, so that every browser gives the same pixels. */

import { fromBase64, toBase64 } from '../state/pack';

export const SIDE = 140; // of the drawing, in units that strokes are stored in
export const BRUSH = 7.5;
const SOFT = 2.5;

/** Points x0, y0, x1, y1, … from 0 to SIDE. */
export type Stroke = number[];

export function packStrokes(strokes: readonly Stroke[]): string {
  const bytes: number[] = [];
  for (const stroke of strokes) {
    for (const value of stroke) bytes.push(Math.max(0, Math.min(SIDE, Math.round(value))));
    bytes.push(255);
  }
  return toBase64(Uint8Array.from(bytes));
}

export function unpackStrokes(text: string): Stroke[] {
  const strokes: Stroke[] = [];
  let stroke: Stroke = [];
  for (const byte of fromBase64(text)) {
    if (byte !== 255) stroke.push(byte);
    else {
      if (stroke.length >= 2) strokes.push(stroke);
      stroke = [];
    }
  }
  return strokes;
}

/** Ink from 0 to 1, [SIDE, SIDE]. */
export function paint(strokes: readonly Stroke[]): Float32Array {
  const ink = new Float32Array(SIDE * SIDE);
  for (const stroke of strokes) paintStroke(ink, stroke, 0);
  return ink;
}

let lastPainted: { strokes: Stroke[]; ink: Float32Array } = { strokes: [], ink: new Float32Array(SIDE * SIDE) };

/** The same for packed strokes; while a drawing grows, only what is new is painted. */
export function paintPacked(text: string): Float32Array {
  const strokes = unpackStrokes(text);
  const before = lastPainted.strokes;
  const grown = before.length <= strokes.length && before.every((stroke, n) => {
    const whole = n < before.length - 1; // only the last stroke of before may have become longer
    return (whole ? stroke.length === strokes[n].length : stroke.length <= strokes[n].length) && stroke.every((value, k) => value === strokes[n][k]);
  });
  const ink = grown ? lastPainted.ink.slice() : new Float32Array(SIDE * SIDE);
  strokes.forEach((stroke, n) => paintStroke(ink, stroke, grown ? (before[n]?.length ?? 0) : 0));
  lastPainted = { strokes, ink };
  return ink;
}

/** From the point at `first` on; a single point is a dot. */
function paintStroke(ink: Float32Array, stroke: Stroke, first: number): void {
  for (let n = first; n + 1 < stroke.length; n += 2) {
    const before = Math.max(0, n - 2);
    paintSegment(ink, stroke[before], stroke[before + 1], stroke[n], stroke[n + 1]);
  }
}

function paintSegment(ink: Float32Array, x0: number, y0: number, x1: number, y1: number): void {
  const reach = BRUSH + SOFT;
  const top = Math.max(0, Math.floor(Math.min(y0, y1) - reach));
  const bottom = Math.min(SIDE - 1, Math.ceil(Math.max(y0, y1) + reach));
  const left = Math.max(0, Math.floor(Math.min(x0, x1) - reach));
  const right = Math.min(SIDE - 1, Math.ceil(Math.max(x0, x1) + reach));
  const squared = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const along = squared === 0 ? 0 : ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / squared;
      const t = Math.max(0, Math.min(1, along));
      const distance = Math.hypot(x - x0 - t * (x1 - x0), y - y0 - t * (y1 - y0));
      const value = Math.max(0, Math.min(1, (reach - distance) / (2 * SOFT)));
      if (value > ink[y * SIDE + x]) ink[y * SIDE + x] = value;
    }
  }
}
