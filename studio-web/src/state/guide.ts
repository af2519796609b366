/** The guide: short cards, each of which sets the real screens. */

import type { EquationName } from '../parts/Equation.svelte';
import { START, type Fields } from './fields';
import { studio } from './studio.svelte';

export interface Card {
  readonly title: string;
  readonly text: readonly string[];
  /** What to do on the screen below. */
  readonly task: string;
  readonly equation: EquationName;
  readonly fields: Partial<Fields>;
  /** A small curve of Eq. 1 beside the text. */
  readonly curve?: boolean;
}

const EXAMPLE: Partial<Fields> = { input: 'test', index: START.index, capsule: -1, moves: [] };

export const CARDS: readonly Card[] = [
  {
    title: 'A capsule is a small group of neurons',
    text: [
      'Most networks give one number for each class. This one gives each class a capsule: a group of neurons whose outputs are read together, as one vector. Think of an arrow.',
      'An arrow has a length and a direction. The length says whether the thing is there. The direction says what it looks like.',
    ],
    task: 'Look at “What capsule … holds”: these numbers are the arrow. From them alone the decoder drew the middle picture.',
    equation: 'decoder',
    fields: { ...EXAMPLE, screen: 'look' },
  },
  {
    title: 'The length: is it there?',
    text: [
      'The bars are the lengths of the class capsules, from 0 to 1. The network was trained to bring a class that is there above 0.9, and all others below 0.1: the two marks.',
    ],
    task: 'Press r for another digit, or choose Draw and write one. Watch the bars.',
    equation: 'margin',
    fields: { ...EXAMPLE, screen: 'look' },
  },
  {
    title: 'The direction: what does it look like?',
    text: [
      'The direction of the arrow holds how the digit was written: thick or thin, slanted, wide, with a loop or without. Nobody told the network what each number should mean. It found out by having to draw the digit again.',
    ],
    task: 'One number has been moved for you. Move more sliders. Does the digit stay what it is?',
    equation: 'decoder',
    fields: { ...EXAMPLE, screen: 'dimensions', range: 'quarter', keepLength: false, moves: [0, 0, 0, 0.2] },
  },
  {
    title: 'Squash: a length becomes a probability',
    text: [
      'A sum of arrows can have any length, a probability cannot. The squash keeps the direction and brings the length below 1: short arrows shrink to almost nothing, long ones to almost 1.',
    ],
    task: 'Move the slider of the curve. Below, the dashed arrow is the sum s; the bold one is what the squash makes of it.',
    equation: 'squash',
    fields: { screen: 'routing', byHand: true, handStep: 3, handVotes: [] },
    curve: true,
  },
  {
    title: 'Parts vote for the whole',
    text: [
      'Below the class capsules are many small ones. Each looks at a patch of the picture and finds a piece of a stroke. By a learned matrix it predicts the whole: “if I am part of an A, then A looks like this”. That prediction is its vote.',
    ],
    task: 'Here are five such capsules and two parents. Who agrees with whom?',
    equation: 'votes',
    fields: { screen: 'routing', byHand: true, handStep: 0, handVotes: [] },
  },
  {
    title: 'The coupling coefficient: how I share my vote',
    text: [
      'A stroke belongs to one digit, not to all. So each small capsule shares itself among its parents. The share that goes to one parent is a coupling coefficient; the shares of one child add up to 1.',
      'The shares are not learned. They are worked out anew for every picture, and start equal.',
    ],
    task: 'In the table, c A and c B of every child are 0.5. Press n a few times and watch them change.',
    equation: 'coupling',
    fields: { screen: 'routing', byHand: true, handStep: 1, handVotes: [] },
  },
  {
    title: 'Agreement decides',
    text: [
      'Each vote is compared with what its parent became. Where they point the same way, the share grows; where not, it shrinks. After three rounds children 1, 2 and 3 belong to A, and 4 and 5 to B. That is routing by agreement.',
    ],
    task: 'Drag arrow 3 of parent A to the other side, and see whether it still belongs there.',
    equation: 'agreement',
    fields: { screen: 'routing', byHand: true, handStep: 12, handVotes: [] },
  },
  {
    title: 'The same in the real network',
    text: [
      'This is the routing of the input picture: thousands of coefficients, gathered by the place in the picture. At first each place gives every class the same share.',
    ],
    task: 'Press Play. Then raise R to 10: does more routing help, or does it only make up its mind harder?',
    equation: 'agreement',
    fields: { ...EXAMPLE, screen: 'routing', byHand: false, group: 'position', iteration: 1, rounds: 0 },
  },
  {
    title: 'Two at once',
    text: [
      'Because each part gives its vote to one whole, two digits that lie over each other can both be found, and each drawn by itself. A softmax over classes could only name one.',
    ],
    task: 'Drag the two digits of the input (on a small screen, Change opens it). When does the network lose one of them?',
    equation: 'coupling',
    fields: { screen: 'overlap', input: 'overlay', capsule: -1, other: -1 },
  },
  {
    title: 'Moved things',
    text: [
      'When a part turns, its vote turns with it, and the parts still agree. The hope is that a capsule network holds on to a moved digit longer than a plain one. The curves show where that is true, and where it is not.',
    ],
    task: 'Move the slider, and try the other transformations.',
    equation: 'votes',
    fields: { ...EXAMPLE, screen: 'affine', transform: 'rotate', at: 24 },
  },
];

export const QUESTIONS = [
  { question: 'What is a capsule?', answer: 'A group of neurons whose outputs are one vector. Its length says whether something is there, its direction what it looks like.' },
  { question: 'What is a coupling coefficient?', answer: 'The share of its vote that a lower capsule gives to one upper capsule. The shares of one lower capsule add up to 1; they are worked out for every picture, by agreement.' },
  { question: 'What is a squash?', answer: 'The function that keeps a vector’s direction and brings its length below 1, so that the length can be read as a probability.' },
] as const;

/** Show a card and set the screens as it says; one past the last ends at the questions. */
export function showCard(n: number): void {
  if (n < 0 || n >= CARDS.length) {
    Object.assign(studio, { screen: 'guide', card: n < 0 ? -1 : CARDS.length });
    return;
  }
  Object.assign(studio, CARDS[n].fields, { card: n });
  document.querySelector('#screen')?.scrollTo({ top: 0 });
}
