/** From a drawing to what the network sees. */

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/**
 * As MNIST is made: the ink's box is scaled to fit 20/28 of the picture, its centre of mass is put in the middle.
 * `ink` is a square picture with numbers from 0 to 1.
 */
export function centred(ink: Float32Array, side: number, height: number, width: number): Float32Array {
  const box = inkBox(ink, side);
  if (!box) return new Float32Array(height * width);
  const scale = ((20 / 28) * Math.min(height, width)) / Math.max(box.right - box.left, box.bottom - box.top);
  const [x, y] = centreOfMass(ink, side);
  return resampled(ink, side, height, width, scale, x, y);
}

/** The whole drawing, scaled to the picture. */
export function scaled(ink: Float32Array, side: number, height: number, width: number): Float32Array {
  return resampled(ink, side, height, width, Math.min(height, width) / side, side / 2, side / 2);
}

function inkBox(ink: Float32Array, side: number): Box | null {
  const box = { left: side, top: side, right: 0, bottom: 0 };
  ink.forEach((value, n) => {
    if (value < 0.25) return;
    const [x, y] = [n % side, Math.floor(n / side)];
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x + 1);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y + 1);
  });
  return box.right > box.left ? box : null;
}

function centreOfMass(ink: Float32Array, side: number): [x: number, y: number] {
  let [total, sumX, sumY] = [0, 0, 0];
  ink.forEach((value, n) => {
    total += value;
    sumX += value * ((n % side) + 0.5);
    sumY += value * (Math.floor(n / side) + 0.5);
  });
  return [sumX / total, sumY / total];
}

/** Mean ink under every pixel, with (x, y) of the drawing in the picture's middle. */
function resampled(
  ink: Float32Array, side: number, height: number, width: number, scale: number, x: number, y: number,
): Float32Array {
  const SAMPLES = 4;
  const picture = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let n = 0; n < SAMPLES * SAMPLES; n++) {
        const sourceX = x + (column + ((n % SAMPLES) + 0.5) / SAMPLES - width / 2) / scale - 0.5;
        const sourceY = y + (row + (Math.floor(n / SAMPLES) + 0.5) / SAMPLES - height / 2) / scale - 0.5;
        sum += bilinear(ink, side, side, sourceX, sourceY);
      }
      picture[row * width + column] = sum / SAMPLES ** 2;
    }
  }
  return picture;
}

/** The value between the pixels' centres; 0 outside. */
export function bilinear(values: ArrayLike<number>, height: number, width: number, x: number, y: number): number {
  const [left, top] = [Math.floor(x), Math.floor(y)];
  const [partX, partY] = [x - left, y - top];
  const at = (row: number, column: number): number =>
    row < 0 || column < 0 || row >= height || column >= width ? 0 : values[row * width + column];
  return (
    (1 - partY) * ((1 - partX) * at(top, left) + partX * at(top, left + 1)) +
    partY * ((1 - partX) * at(top + 1, left) + partX * at(top + 1, left + 1))
  );
}
