/** A picture file decoded by the browser, where no server does it; the rule is the server's. */

import { centred } from '../picture/centre';
import { placed, toBytes, type Shape } from '../picture/picture';
import { RequestError } from './fetching';

const LARGEST_FILE = 10e6;
const MNIST = 28;
const SIDE = 140; // to which a picture is brought before its ink is cut out
const FAINT = 8 / 255; // less contrast is no ink

export async function decodeFile(
  file: Blob, shape: Shape, digits: boolean, invert: 'auto' | 'yes' | 'no',
): Promise<{ pixels: Uint8Array; inverted: boolean }> {
  if (file.size > LARGEST_FILE) throw new RequestError('the picture is larger than 10 MB');
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new RequestError('this file is not a picture that the browser can read');
  }
  const [channels, height, width] = shape;
  const centre = digits && ![[MNIST, MNIST], [height, width]].some(([h, w]) => bitmap.height === h && bitmap.width === w);
  const [rows, columns] = centre ? [SIDE, SIDE] : digits ? [bitmap.height, bitmap.width] : [height, width];
  const values = fitted(bitmap, channels, rows, columns);
  const border = borderOf(values, rows, columns);
  const inverted = invert === 'yes' || (invert === 'auto' && channels === 1 && mean(border) > 0.5);
  if (inverted) values.forEach((value, n) => (values[n] = 1 - value));
  if (!centre) return { pixels: placed(toBytes(values), [channels, rows, columns], shape), inverted };
  const ground = border.sort()[border.length >> 1];
  const ink = stretched(values, inverted ? 1 - ground : ground);
  return { pixels: placed(toBytes(stretched(centred(ink, SIDE, MNIST, MNIST), 0)), [1, MNIST, MNIST], shape), inverted };
}

/** Scaled to fit inside, in the middle, its border repeated outwards: [channels, height, width] from 0 to 1. */
function fitted(bitmap: ImageBitmap, channels: number, height: number, width: number): Float32Array {
  const scale = Math.min(height / bitmap.height, width / bitmap.width);
  const [h, w] = [bitmap.height, bitmap.width].map((side) => Math.max(1, Math.round(side * scale)));
  const context = new OffscreenCanvas(w, h).getContext('2d')!;
  context.imageSmoothingQuality = 'high';
  context.fillStyle = '#fff';
  context.fillRect(0, 0, w, h);
  context.drawImage(bitmap, 0, 0, w, h);
  const { data } = context.getImageData(0, 0, w, h);
  const [top, left] = [Math.floor((height - h) / 2), Math.floor((width - w) / 2)];
  return Float32Array.from({ length: channels * height * width }, (_, n) => {
    const y = Math.max(0, Math.min(h - 1, (Math.floor(n / width) % height) - top));
    const x = Math.max(0, Math.min(w - 1, (n % width) - left));
    const [red, green, blue] = data.subarray(4 * (y * w + x));
    const colour = channels === 1 ? 0.299 * red + 0.587 * green + 0.114 * blue : [red, green, blue][Math.floor(n / width / height)];
    return colour / 255;
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

/** From 0 at the ground to 1 at the brightest. */
function stretched(values: Float32Array, ground: number): Float32Array {
  const contrast = values.reduce((most, value) => Math.max(most, value - ground), 0);
  return values.map((value) => (contrast < FAINT ? 0 : Math.max(0, value - ground) / contrast));
}
