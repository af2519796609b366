/**
 * Cut a handwritten digit out of a photograph, a scan or a drawing, and bring it to the form of MNIST.
 *
 * The same steps with the same numbers as `torchcaps/data/readers/written_digit.py`, whose comments say why; golden
 * cases hold the two together.
 */

export interface Plane {
  readonly height: number;
  readonly width: number;
  readonly values: Float64Array;
}

/** Bottom and right lie outside. */
export interface Box {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

export interface WrittenDigit {
  /** [28, 28], bright on black. */
  readonly pixels: Uint8Array;
  readonly inverted: boolean;
  readonly box: Box | null;
}

export type Invert = 'auto' | 'yes' | 'no';

export const DIGIT_SIDE = 28;
/** A digit below a quarter of it is cut out of the whole picture and looked at again. */
export const WORKING_SIDE = 256;
const DIGIT_BOX = 20;
const NOISY_SIDE = 100;
const GROUND_WINDOW = 0.2;
const FAINTEST = 0.04;
const [LEAST_OF_PEAK, MOST_OF_PEAK] = [0.15, 0.6];
const ABOVE_LINES = 1.3;
const PAPER_SHARE = 0.98;
const [SMALL_PART, FAR_PART] = [0.04, 0.3];
const LEAST_SHARE = 0.2;
const LEAST_INSIDE = 0.12;
const STROKE_WIDTHS = [128, 64, 40, 24, 16, 10];
const SEEN_WIDTH = 0.15;
const CLEARLY = 2.5;

/** The digit on a grey picture from 0 to 255, at most 256 pixels a side. */
export function findDigit(grey: Plane, invert: Invert): WrittenDigit {
  const smooth = Math.max(grey.height, grey.width) > NOISY_SIDE ? blurred(grey) : grey;
  const inverted = invert === 'yes' || (invert === 'auto' && darkOnBright(smooth));
  const paper = inverted ? smooth : mapped(smooth, (value) => 255 - value);
  let ink = inkOf(contrastOf(paper, null), false);
  if (ink?.cutOff) ink = inkOf(contrastOf(paper, quantile(paper.values, 0.9)), true);
  return ink
    ? { pixels: mnistForm(ink.values, ink.box), inverted, box: ink.box }
    : { pixels: new Uint8Array(DIGIT_SIDE * DIGIT_SIDE), inverted, box: null };
}

/** Of [H, W] from 0 to 255; the strokes are the thinnest things that stand out. */
function darkOnBright(grey: Plane): boolean {
  const negative = mapped(grey, (value) => -value);
  const found = STROKE_WIDTHS.map((part) => {
    const reach = Math.max(1, Math.round(Math.min(grey.height, grey.width) / part));
    const [above, below] = [filled(grey, reach, null), filled(negative, reach, null)];
    return [meanSquare(above, (value, n) => value - grey.values[n]), meanSquare(below, (value, n) => value + grey.values[n])];
  });
  const most = Math.max(...found.flat());
  const [dark, bright] = found.find((pair) => Math.max(...pair) >= SEEN_WIDTH * most)!;
  if (Math.max(dark, bright) < CLEARLY * Math.min(dark, bright) || most < 1) return borderMean(grey) > 127.5;
  return dark > bright;
}

function borderMean({ height, width, values }: Plane): number {
  let sum = 0;
  for (let x = 0; x < width; x++) sum += values[x] + values[(height - 1) * width + x];
  for (let y = 0; y < height; y++) sum += values[y * width] + values[(y + 1) * width - 1];
  return sum / (2 * (height + width));
}

function contrastOf(paper: Plane, outside: number | null): Plane {
  const reach = Math.max(2, Math.floor(Math.max(paper.height, paper.width) * GROUND_WINDOW));
  const ground = filled(paper, reach, outside);
  const least = Math.max(0.5 * quantile(ground.values, 0.9), 1);
  const share = mapped(ground, (value, n) => (value - paper.values[n]) / Math.max(value, least));
  const middle = quantile(share.values, 0.5);
  return mapped(share, (value) => Math.max(0, value - middle));
}

interface Ink {
  readonly values: Plane;
  readonly box: Box;
  readonly cutOff: boolean;
}

interface Part {
  readonly label: number;
  mass: number;
  peak: number;
  box: Box;
}

function inkOf(contrast: Plane, inside: boolean): Ink | null {
  const { height, width, values } = contrast;
  const peak = largestOf(values);
  if (peak < FAINTEST) return null;
  const threshold = thresholdOf(contrast, peak);
  const { labels, parts } = partsOf(contrast, threshold);
  const cutOff = ({ box }: Part): boolean => box.top === 0 || box.left === 0 || box.bottom === height || box.right === width;
  let strong = parts.filter((part) => part.peak >= MOST_OF_PEAK * peak);
  if (inside) {
    const least = LEAST_INSIDE * Math.max(height, width);
    const within = strong.filter((part) => !cutOff(part) && sizeOf(part.box) > least);
    if (within.length) strong = within;
  }
  const main = strong.reduce((best, part) => (part.mass > best.mass ? part : best));
  const digit = parts.filter(
    (part) =>
      part.mass >= SMALL_PART * main.mass &&
      distance(part.box, main.box) < FAR_PART * sizeOf(main.box) &&
      (!cutOff(part) || cutOff(main)),
  );
  const massOf = (some: Part[]): number => some.reduce((sum, part) => sum + part.mass, 0);
  if (massOf(digit) < LEAST_SHARE * massOf(strong)) return null;
  const chosen = new Set(digit.map((part) => part.label));
  const mask = mapped(contrast, (_, n) => Number(chosen.has(labels[n])));
  const core = values.filter((value, n) => mask.values[n] > 0 && value > 0.5 * peak);
  const full = Math.max(quantile(core, 0.5), 1.2 * threshold);
  const near = largest(padded(mask, 2, 0), 2).values;
  const ink = mapped(contrast, (value, n) => Math.max(0, Math.min(1, (value - threshold / 2) / (full - threshold / 2))) * near[n]);
  return { values: ink, box: digit.map((part) => part.box).reduce(around), cutOff: cutOff(main) };
}

function thresholdOf(contrast: Plane, peak: number): number {
  const strong = largest(padded(mapped(contrast, (value) => Number(value > 0.5 * peak)), 3, 0), 3).values;
  const beside = contrast.values.filter((_, n) => strong[n] === 0);
  const lines = beside.length ? quantile(beside, PAPER_SHARE) : 0;
  return Math.min(Math.max(LEAST_OF_PEAK * peak, ABOVE_LINES * lines), MOST_OF_PEAK * peak);
}

/** Pieces that hang together, also over corners, numbered from 1. */
function partsOf({ height, width, values }: Plane, threshold: number): { labels: Int32Array; parts: Part[] } {
  const labels = new Int32Array(values.length);
  const parts: Part[] = [];
  for (let first = 0; first < values.length; first++) {
    if (values[first] <= threshold || labels[first]) continue;
    const part: Part = { label: parts.length + 1, mass: 0, peak: 0, box: { top: height, bottom: 0, left: width, right: 0 } };
    const open = [first];
    labels[first] = part.label;
    while (open.length) {
      const place = open.pop()!;
      const [y, x] = [Math.floor(place / width), place % width];
      part.mass += values[place];
      part.peak = Math.max(part.peak, values[place]);
      part.box = around(part.box, { top: y, bottom: y + 1, left: x, right: x + 1 });
      for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row++) {
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++) {
          const next = row * width + column;
          if (values[next] <= threshold || labels[next]) continue;
          labels[next] = part.label;
          open.push(next);
        }
      }
    }
    parts.push(part);
  }
  return { labels, parts };
}

function sizeOf(box: Box): number {
  return Math.max(box.bottom - box.top, box.right - box.left);
}

function distance(a: Box, b: Box): number {
  return Math.max(a.top - b.bottom, b.top - a.bottom, a.left - b.right, b.left - a.right);
}

function around(a: Box, b: Box): Box {
  return {
    top: Math.min(a.top, b.top), bottom: Math.max(a.bottom, b.bottom),
    left: Math.min(a.left, b.left), right: Math.max(a.right, b.right),
  };
}

function mnistForm(ink: Plane, box: Box): Uint8Array {
  const [tall, wide] = [box.bottom - box.top, box.right - box.left];
  const scale = DIGIT_BOX / Math.max(tall, wide);
  const [height, width] = [tall, wide].map((side) => Math.max(1, Math.round(side * scale)));
  const digit = shrunk(ink, box, height, width);
  const whitest = Math.max(largestOf(digit), 1e-6);
  let [mass, sumY, sumX] = [0, 0, 0];
  for (let n = 0; n < digit.length; n++) {
    digit[n] /= whitest;
    mass += digit[n];
    sumY += digit[n] * Math.floor(n / width);
    sumX += digit[n] * (n % width);
  }
  const start = (sum: number, side: number): number =>
    Math.min(Math.max(0, Math.round((DIGIT_SIDE - 1) / 2 - sum / Math.max(mass, 1e-6))), DIGIT_SIDE - side);
  const [top, left] = [start(sumY, height), start(sumX, width)];
  const pixels = new Uint8Array(DIGIT_SIDE * DIGIT_SIDE);
  digit.forEach((value, n) => {
    pixels[(top + Math.floor(n / width)) * DIGIT_SIDE + left + (n % width)] = Math.floor(value * 255 + 0.5);
  });
  return pixels;
}

/** The mean of what each new pixel covers. */
function shrunk(ink: Plane, box: Box, height: number, width: number): Float64Array {
  const [tall, wide] = [box.bottom - box.top, box.right - box.left];
  const result = new Float64Array(height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const [up, down] = [(row * tall) / height, ((row + 1) * tall) / height];
      const [west, east] = [(column * wide) / width, ((column + 1) * wide) / width];
      let sum = 0;
      for (let y = Math.floor(up); y < Math.min(tall, Math.ceil(down)); y++) {
        const high = Math.max(0, Math.min(down, y + 1) - Math.max(up, y));
        for (let x = Math.floor(west); x < Math.min(wide, Math.ceil(east)); x++) {
          const share = high * Math.max(0, Math.min(east, x + 1) - Math.max(west, x));
          sum += share * ink.values[(box.top + y) * ink.width + box.left + x];
        }
      }
      result[row * width + column] = (sum * height * width) / (tall * wide);
    }
  }
  return result;
}

/** Grey closing: dark things narrower than 2 · reach + 1 pixels become as bright as what is around them. */
function filled(plane: Plane, reach: number, outside: number | null): Plane {
  const grown = largest(padded(plane, 2 * reach, outside), reach);
  return mapped(largest(mapped(grown, (value) => -value), reach), (value) => -value);
}

/** The largest value of each window of 2 · reach + 1 pixels a side; `reach` pixels are lost on every side. */
function largest(plane: Plane, reach: number): Plane {
  return slid(slid(plane, 2 * reach + 1, true), 2 * reach + 1, false);
}

/** The largest of `size` values that follow each other in a row, or in a column, by doubling. */
function slid(plane: Plane, size: number, alongRows: boolean): Plane {
  let { height, width, values } = plane;
  const join = (apart: number): void => {
    const [tall, wide, step] = alongRows ? [height, width - apart, apart] : [height - apart, width, apart * width];
    const joined = new Float64Array(tall * wide);
    for (let y = 0; y < tall; y++) {
      for (let x = 0; x < wide; x++) {
        const [one, other] = [values[y * width + x], values[y * width + x + step]];
        joined[y * wide + x] = one > other ? one : other;
      }
    }
    [height, width, values] = [tall, wide, joined];
  };
  let window = 1;
  for (; 2 * window <= size; window *= 2) join(window);
  if (size > window) join(size - window);
  return { height, width, values };
}

/** With a margin of one value, or of what lies at the edge. */
function padded({ height, width, values }: Plane, margin: number, outside: number | null): Plane {
  const [tall, wide] = [height + 2 * margin, width + 2 * margin];
  const result = new Float64Array(tall * wide);
  for (let row = 0; row < tall; row++) {
    const y = Math.max(0, Math.min(height - 1, row - margin));
    for (let column = 0; column < wide; column++) {
      const x = Math.max(0, Math.min(width - 1, column - margin));
      const within = y === row - margin && x === column - margin;
      result[row * wide + column] = within || outside === null ? values[y * width + x] : outside;
    }
  }
  return { height: tall, width: wide, values: result };
}

/** The mean of 3×3 pixels. */
function blurred(plane: Plane): Plane {
  const { height, width } = plane;
  const { values: around } = padded(plane, 1, null);
  const wide = width + 2;
  const rows = new Float64Array(height * wide);
  for (let n = 0; n < rows.length; n++) rows[n] = (around[n] + around[n + wide] + around[n + 2 * wide]) / 3;
  return mapped(plane, (_, n) => {
    const place = Math.floor(n / width) * wide + (n % width);
    return (rows[place] + rows[place + 1] + rows[place + 2]) / 3;
  });
}

/** The value that has this part of the others below it. */
function quantile(values: Float64Array, part: number): number {
  return values.slice().sort()[Math.floor(part * (values.length - 1))];
}

function mapped({ height, width, values }: Plane, change: (value: number, n: number) => number): Plane {
  return { height, width, values: values.map(change) };
}

function meanSquare({ values }: Plane, change: (value: number, n: number) => number): number {
  return values.reduce((sum, value, n) => sum + change(value, n) ** 2, 0) / values.length;
}

function largestOf(values: Float64Array): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
