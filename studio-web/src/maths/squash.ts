/** Eq. 1: the non-linearity that turns the length of a vector into a probability. */

/** Length of the vector of `dim` numbers that starts at `offset`. */
export function lengthAt(values: ArrayLike<number>, offset: number, dim: number): number {
  let sum = 0;
  for (let d = 0; d < dim; d++) sum += values[offset + d] * values[offset + d];
  return Math.sqrt(sum);
}

/** Length of every capsule along the last axis. */
export function lengths(capsules: ArrayLike<number>, dim: number): Float32Array {
  return Float32Array.from({ length: capsules.length / dim }, (_, j) => lengthAt(capsules, j * dim, dim));
}

/** What Eq. 1 makes of a length: ‖s‖² / (1 + ‖s‖²). */
export function squashedLength(length: number): number {
  return length > 1 ? 1 / (1 + 1 / length ** 2) : length ** 2 / (1 + length ** 2); // no square overflows
}

/** v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖ for every capsule along the last axis; a zero vector stays zero. */
export function squash(sums: ArrayLike<number>, dim: number): Float32Array {
  const result = new Float32Array(sums.length);
  for (let start = 0; start < sums.length; start += dim) {
    let scale = 1;
    for (let d = 0; d < dim; d++) scale = Math.max(scale, Math.abs(sums[start + d]));
    let squared = 0;
    for (let d = 0; d < dim; d++) squared += (sums[start + d] / scale) ** 2;
    const factor = Math.sqrt(squared) / (1 / scale ** 2 + squared) / scale;
    for (let d = 0; d < dim; d++) result[start + d] = sums[start + d] * factor;
  }
  return result;
}
