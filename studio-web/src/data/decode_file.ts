/** A picture file decoded by the browser, where no server does it; the rule is the server's. */

import { placed, toBytes } from '../picture/picture';
import { DIGIT_SIDE, findDigit, WORKING_SIDE, type Box, type Invert, type WrittenDigit } from '../picture/written_digit';
import { RequestError } from './fetching';
import type { Model } from './types';

const LARGEST_FILE = 10e6;

export async function decodeFile(file: Blob, model: Model, invert: Invert): Promise<{ pixels: Uint8Array; inverted: boolean }> {
  if (file.size > LARGEST_FILE) throw new RequestError('the picture is larger than 10 MB');
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new RequestError('this file is not a picture that the browser can read');
  }
  const [channels, height, width] = model.image_shape;
  const ready = [[DIGIT_SIDE, DIGIT_SIDE], [height, width]].some(([h, w]) => bitmap.height === h && bitmap.width === w);
  if (model.digits && !ready) {
    const { pixels, inverted } = readDigit(bitmap, invert);
    return { pixels: placed(pixels, [1, DIGIT_SIDE, DIGIT_SIDE], model.image_shape), inverted };
  }
  const [rows, columns] = model.digits ? [bitmap.height, bitmap.width] : [height, width];
  const values = fitted(bitmap, channels, rows, columns);
  const inverted = invert === 'yes' || (invert === 'auto' && model.white_on_black && mean(borderOf(values, rows, columns)) > 0.5);
  if (inverted) values.forEach((value, n) => (values[n] = 1 - value));
  return { pixels: placed(toBytes(values), [channels, rows, columns], model.image_shape), inverted };
}

/** A small digit is looked at again in the whole picture. */
function readDigit(bitmap: ImageBitmap, invert: Invert, part: Box = { top: 0, bottom: bitmap.height, left: 0, right: bitmap.width }): WrittenDigit {
  const scale = Math.max(1, Math.max(part.bottom - part.top, part.right - part.left) / WORKING_SIDE);
  const [height, width] = [part.bottom - part.top, part.right - part.left].map((side) => Math.max(1, Math.round(side / scale)));
  const data = drawn(bitmap, part, height, width);
  const values = Float64Array.from({ length: height * width }, (_, n) => grey(data, 4 * n));
  const found = findDigit({ height, width, values }, invert);
  const { box } = found;
  const size = box ? Math.max(box.bottom - box.top, box.right - box.left) : Infinity;
  if (!box || scale === 1 || size >= WORKING_SIDE / 4) return found;
  const closer: Box = {
    top: part.top + Math.round(Math.max(0, box.top - size) * scale),
    bottom: part.top + Math.round(Math.min(height, box.bottom + size) * scale),
    left: part.left + Math.round(Math.max(0, box.left - size) * scale),
    right: part.left + Math.round(Math.min(width, box.right + size) * scale),
  };
  return readDigit(bitmap, found.inverted ? 'yes' : 'no', closer);
}

/** A part of a picture over white, scaled: red, green, blue and 255 of each pixel. */
function drawn(bitmap: ImageBitmap, part: Box, height: number, width: number): Uint8ClampedArray {
  const context = new OffscreenCanvas(width, height).getContext('2d')!;
  context.imageSmoothingQuality = 'high';
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, part.left, part.top, part.right - part.left, part.bottom - part.top, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

function grey(data: Uint8ClampedArray, place: number): number {
  return 0.299 * data[place] + 0.587 * data[place + 1] + 0.114 * data[place + 2];
}

/** Scaled to fit inside, in the middle, its border repeated outwards: [channels, height, width] from 0 to 1. */
function fitted(bitmap: ImageBitmap, channels: number, height: number, width: number): Float32Array {
  const scale = Math.min(height / bitmap.height, width / bitmap.width);
  const [h, w] = [bitmap.height, bitmap.width].map((side) => Math.max(1, Math.round(side * scale)));
  const data = drawn(bitmap, { top: 0, bottom: bitmap.height, left: 0, right: bitmap.width }, h, w);
  const [top, left] = [Math.floor((height - h) / 2), Math.floor((width - w) / 2)];
  return Float32Array.from({ length: channels * height * width }, (_, n) => {
    const y = Math.max(0, Math.min(h - 1, (Math.floor(n / width) % height) - top));
    const x = Math.max(0, Math.min(w - 1, (n % width) - left));
    const place = 4 * (y * w + x);
    return (channels === 1 ? grey(data, place) : data[place + Math.floor(n / width / height)]) / 255;
  });
}

function borderOf(values: Float32Array, height: number, width: number): Float32Array {
  return values.filter((_, n) => {
    const [y, x] = [Math.floor(n / width) % height, n % width];
    return y === 0 || x === 0 || y === height - 1 || x === width - 1;
  });
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
