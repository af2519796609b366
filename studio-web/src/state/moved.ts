import { lengthAt } from '../maths/squash';

/** A capsule with its dimensions moved; with `keepLength` only its direction changes. */
export function moved(vector: Float32Array, moves: readonly number[], keepLength: boolean): Float32Array {
  const result = vector.map((value, d) => value + (moves[d] ?? 0));
  if (!keepLength) return result;
  const length = lengthAt(result, 0, result.length);
  const scale = length > 0 ? lengthAt(vector, 0, vector.length) / length : 0;
  return result.map((value) => value * scale);
}
