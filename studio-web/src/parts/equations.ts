/** The equations of the paper, with what they mean and where they live in the library. */

import type { EquationName } from './Equation.svelte';

export interface EquationCard {
  readonly name: EquationName;
  readonly number: string;
  readonly title: string;
  readonly words: string;
  readonly code: string;
}

export const EQUATIONS: readonly EquationCard[] = [
  { name: 'squash', number: 'Eq. 1', title: 'Squash', code: 'ops.squash', words: 'Keeps the direction of a vector and brings its length below 1: short ones go to nearly nothing, long ones to nearly one. So a length can be read as a probability.' },
  { name: 'votes', number: 'Eq. 2', title: 'Votes', code: 'ops.votes', words: 'Each lower capsule i says, by a learned matrix, what the upper capsule j should look like if i is a part of it.' },
  { name: 'sum', number: 'Eq. 2', title: 'Weighted sum', code: 'ops.dynamic_routing', words: 'The upper capsule adds up the votes, each weighted by its coupling coefficient.' },
  { name: 'coupling', number: 'Eq. 3', title: 'Coupling coefficient', code: 'ops.dynamic_routing', words: 'How much of its vote the lower capsule i gives to the upper capsule j. Over all parents j the shares add up to 1. They start equal.' },
  { name: 'agreement', number: 'Procedure 1', title: 'Agreement', code: 'ops.dynamic_routing', words: 'A vote that points where the result points raises its own logit, and so its share in the next iteration. A vote that disagrees loses.' },
  { name: 'margin', number: 'Eq. 4', title: 'Margin loss', code: 'ops.margin_loss', words: 'Trains lengths above 0.9 for classes that are there and below 0.1 for the others. The two marks beside the bars are these margins.' },
  { name: 'decoder', number: 'Section 4.1', title: 'Decoder', code: 'model.reconstruct', words: 'Draws the picture again from one class capsule alone; all others are masked with zeros.' },
];
