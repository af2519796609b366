/** Routing by hand: a handful of votes in the plane, taken step by step. */

import { agree, coupling, weightedSums, type Votes } from '../maths/routing';
import { squash } from '../maths/squash';

export const CHILDREN = 5;
export const PARENTS = ['A', 'B'] as const;
export const HAND_ROUNDS = 3;
export const PHASES = ['coupling', 'sum', 'squash', 'agreement'] as const;
export type Phase = 'votes' | (typeof PHASES)[number];
export const LAST_STEP = HAND_ROUNDS * PHASES.length;

/** [child, parent, (x, y)]: 1 to 3 agree about A, 4 and 5 about B. */
export const START_VOTES = [
  0.9, 0.5, -0.5, 0.8,
  0.75, 0.7, 0.9, -0.3,
  1.0, 0.25, -0.2, -0.9,
  -0.7, -0.6, -0.9, 0.45,
  0.1, -0.95, -0.95, 0.2,
];

export interface HandState {
  readonly phase: Phase;
  /** From 1. */
  readonly iteration: number;
  readonly logits: Float32Array; // [I, J]
  readonly coefficients: Float32Array;
  readonly sums: Float32Array; // [J, 2]
  readonly outputs: Float32Array;
  readonly agreements: Float32Array; // û · v, [I, J]
}

export function handVotes(values: readonly number[]): Votes {
  const whole = values.length === START_VOTES.length ? values : START_VOTES;
  return { I: CHILDREN, J: PARENTS.length, D: 2, values: Float32Array.from(whole), bias: null, leaky: false };
}

/** Step 0 shows the votes alone; then four steps an iteration. */
export function handState(votes: Votes, step: number): HandState {
  const last = Math.max(0, Math.min(LAST_STEP, step) - 1);
  const iteration = Math.floor(last / PHASES.length) + 1;
  const phase = step <= 0 ? 'votes' : PHASES[last % PHASES.length];
  let logits: Float32Array = new Float32Array(votes.I * votes.J);
  for (let r = 1; ; r++) {
    const coefficients = coupling(logits, votes.J);
    const sums = weightedSums(votes, coefficients);
    const outputs = squash(sums, votes.D);
    const agreements = agree(votes, new Float32Array(logits.length), outputs);
    if (r === iteration) return { phase, iteration, logits, coefficients, sums, outputs, agreements };
    logits = agree(votes, logits, outputs);
  }
}
