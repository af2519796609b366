/** The fully connected decoder of the paper: capsule → 512 → 1024 → picture. */

import { floats, type TensorFile } from './tensors';

interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: Float32Array; // [inputs, outputs]: transposed, so that the inner loop runs along memory
  readonly bias: Float32Array;
}

export class Decoder {
  readonly layers: readonly Layer[];

  constructor(file: TensorFile) {
    const layers: Layer[] = [];
    for (let n = 0; `layer${n}.weight` in file.tensors; n++) {
      const weight = file.tensors[`layer${n}.weight`];
      const [outputs, inputs] = weight.shape;
      layers.push({
        inputs,
        outputs,
        weight: transpose(floats(weight), outputs, inputs),
        bias: floats(file.tensors[`layer${n}.bias`]),
      });
    }
    if (layers.length === 0) throw new Error('the decoder file holds no layer0.weight');
    this.layers = layers;
  }

  /** Draw one class capsule; the others are masked, so only its own inputs are read. */
  draw(capsule: ArrayLike<number>, classIndex: number): Float32Array {
    let values: ArrayLike<number> = capsule;
    let first = classIndex * capsule.length;
    this.layers.forEach((layer, n) => {
      const sums = Float32Array.from(layer.bias);
      for (let input = 0; input < values.length; input++) {
        const value = values[input];
        if (value === 0) continue; // half of the ReLUs
        const row = (first + input) * layer.outputs;
        for (let output = 0; output < layer.outputs; output++) sums[output] += value * layer.weight[row + output];
      }
      const last = n === this.layers.length - 1;
      for (let output = 0; output < sums.length; output++) {
        sums[output] = last ? 1 / (1 + Math.exp(-sums[output])) : Math.max(0, sums[output]);
      }
      values = sums;
      first = 0;
    });
    return values as Float32Array;
  }
}

function transpose(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column];
  }
  return result;
}
