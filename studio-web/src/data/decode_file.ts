/** A picture file decoded by the browser, where no server does it. */

import { centred } from '../picture/centre';
import { toBytes, spread, type Shape } from '../picture/picture';
import { RequestError } from './fetching';

const LARGEST_FILE = 10e6;

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
  const side = digits ? 140 : Math.max(height, width);
  const canvas = new OffscreenCanvas(side, side);
  const context = canvas.getContext('2d')!;
  context.imageSmoothingQuality = 'high';
  const scale = side / Math.max(bitmap.width, bitmap.height);
  const [w, h] = [bitmap.width * scale, bitmap.height * scale];
  context.fillStyle = '#fff';
  context.fillRect(0, 0, side, side);
  context.drawImage(bitmap, (side - w) / 2, (side - h) / 2, w, h);
  const { data } = context.getImageData(0, 0, side, side);
  const grey = Float32Array.from({ length: side * side }, (_, n) =>
    (0.299 * data[4 * n] + 0.587 * data[4 * n + 1] + 0.114 * data[4 * n + 2]) / 255);
  const inverted = invert === 'yes' || (invert === 'auto' && digits && borderMean(grey, side) > 0.5);
  if (inverted) grey.forEach((value, n) => (grey[n] = 1 - value));
  if (digits) return { pixels: spread(toBytes(centred(grey, side, height, width)), channels), inverted };
  const pixels = new Uint8Array(channels * height * width);
  for (let channel = 0; channel < channels; channel++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const at = (y + Math.floor((side - height) / 2)) * side + x + Math.floor((side - width) / 2);
        const value = channels === 3 ? data[4 * at + channel] : Math.round(255 * grey[at]);
        pixels[(channel * height + y) * width + x] = channels === 3 && inverted ? 255 - value : value;
      }
    }
  }
  return { pixels, inverted };
}

/** Bright paper around dark ink is what asks for inversion. */
function borderMean(grey: Float32Array, side: number): number {
  let total = 0;
  for (let n = 0; n < side; n++) {
    total += grey[n] + grey[(side - 1) * side + n] + grey[n * side] + grey[n * side + side - 1];
  }
  return total / (4 * side);
}
