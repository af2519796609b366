/** Routing by agreement (Procedure 1), every iteration kept. */

import { squash } from './squash';

export interface Votes {
  readonly I: number;
  readonly J: number;
  readonly D: number;
  /** û_{j|i}, [I, J, D]. */
  readonly values: Float32Array;
  /** β, [J, D], added to the sums inside the loop. */
  readonly bias: Float32Array | null;
  /** An extra logit fixed at 0 takes part in the softmax and is dropped after it. */
  readonly leaky: boolean;
}

export interface Iteration {
  /** b_ij, [I, J], that the coefficients of this iteration were made from. */
  readonly logits: Float32Array;
  /** c_ij, [I, J]. */
  readonly coefficients: Float32Array;
  /** s_j, [J, D]. */
  readonly sums: Float32Array;
  /** v_j, [J, D]. */
  readonly outputs: Float32Array;
}

/** Eq. 3: softmax over the parents j, for each child i. */
export function coupling(logits: Float32Array, J: number, leaky = false): Float32Array {
  const coefficients = new Float32Array(logits.length);
  for (let start = 0; start < logits.length; start += J) {
    let largest = leaky ? 0 : -Infinity;
    for (let j = 0; j < J; j++) largest = Math.max(largest, logits[start + j]);
    let total = leaky ? Math.exp(-largest) : 0;
    for (let j = 0; j < J; j++) total += Math.exp(logits[start + j] - largest);
    for (let j = 0; j < J; j++) coefficients[start + j] = Math.exp(logits[start + j] - largest) / total;
  }
  return coefficients;
}

/** s_j = Σ_i c_ij û_{j|i} + β_j. */
export function weightedSums(votes: Votes, coefficients: Float32Array): Float32Array {
  const { I, J, D, values, bias } = votes;
  const sums = new Float64Array(J * D);
  if (bias) sums.set(bias);
  for (let i = 0, vote = 0; i < I; i++) {
    for (let j = 0; j < J; j++) {
      const c = coefficients[i * J + j];
      for (let d = 0; d < D; d++, vote++) sums[j * D + d] += c * values[vote];
    }
  }
  return Float32Array.from(sums);
}

/** b_ij + û_{j|i} · v_j. */
export function agree(votes: Votes, logits: Float32Array, outputs: Float32Array): Float32Array {
  const { I, J, D, values } = votes;
  const next = new Float32Array(logits.length);
  for (let link = 0, vote = 0; link < I * J; link++) {
    const output = (link % J) * D;
    let agreement = 0;
    for (let d = 0; d < D; d++, vote++) agreement += values[vote] * outputs[output + d];
    next[link] = logits[link] + agreement;
  }
  return next;
}

export function route(votes: Votes, iterations: number): Iteration[] {
  let logits: Float32Array = new Float32Array(votes.I * votes.J);
  const steps: Iteration[] = [];
  for (let r = 0; r < iterations; r++) {
    if (r > 0) logits = agree(votes, logits, steps[r - 1].outputs);
    const coefficients = coupling(logits, votes.J, votes.leaky);
    const sums = weightedSums(votes, coefficients);
    steps.push({ logits, coefficients, sums, outputs: squash(sums, votes.D) });
  }
  return steps;
}

/** Mean entropy of the shares of a child in nats, its coefficients over their sum: ln J when every parent is equal, 0 for a tree. */
export function entropy(coefficients: Float32Array, J: number): number {
  let total = 0;
  for (let i = 0; i < coefficients.length; i += J) {
    let sum = 0;
    for (let j = i; j < i + J; j++) sum += Math.abs(coefficients[j]);
    for (let j = i; j < i + J; j++) {
      const share = Math.abs(coefficients[j]) / sum;
      if (share > 0) total -= share * Math.log(share);
    }
  }
  return total / (coefficients.length / J);
}
