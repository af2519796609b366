/** Thousands of links are too many to draw: lower capsules in groups, or the strongest alone. */

import type { Group } from './fields';

const MOST_ROWS = 8;

export interface Grid {
  readonly rows: number;
  readonly columns: number;
  readonly types: number;
}

export interface LinkGroup {
  readonly label: string;
  /** Lower capsules in it. */
  readonly members: readonly number[];
  /** Mean length of the lower capsules. */
  readonly length: number;
  /** Mean coefficient for each class, weighted by the lower lengths, [J]. */
  readonly shares: Float32Array;
}

/** Order of the lower capsules: row, column, type. */
export function placeOf(i: number, grid: Grid): { row: number; column: number; type: number } {
  const position = Math.floor(i / grid.types);
  return { row: Math.floor(position / grid.columns), column: position % grid.columns, type: i % grid.types };
}

export function groupLinks(
  coefficients: Float32Array, lengths: Float32Array, J: number, grid: Grid, group: Group, strongest: number, chosen: number,
): LinkGroup[] {
  const I = lengths.length;
  if (group === 'top') {
    const strength = (i: number): number => lengths[i] * coefficients[i * J + chosen];
    const order = [...lengths.keys()].sort((a, b) => strength(b) - strength(a)).slice(0, strongest);
    return order.map((i) => {
      const { row, column, type } = placeOf(i, grid);
      return summed(`${row}, ${column} · ${type}`, [i], coefficients, lengths, J);
    });
  }
  const members = new Map<string, number[]>();
  const block = Math.ceil(Math.max(grid.rows, grid.columns) / MOST_ROWS); // a large grid is drawn in blocks
  for (let i = 0; i < I; i++) {
    const { row, column, type } = placeOf(i, grid);
    const label = group === 'type' ? `type ${type}` : [row, column].map((n) => n - (n % block)).join(', ');
    if (!members.has(label)) members.set(label, []);
    members.get(label)!.push(i);
  }
  return [...members].map(([label, list]) => summed(label, list, coefficients, lengths, J));
}

function summed(label: string, members: number[], coefficients: Float32Array, lengths: Float32Array, J: number): LinkGroup {
  const shares = new Float32Array(J);
  let total = 0;
  for (const i of members) {
    total += lengths[i];
    for (let j = 0; j < J; j++) shares[j] += lengths[i] * coefficients[i * J + j];
  }
  if (total > 0) for (let j = 0; j < J; j++) shares[j] /= total;
  return { label, members, length: total / members.length, shares };
}

/** Lower length × coefficient × upper length, summed over the types: [rows · columns]. */
export function heat(coefficients: Float32Array, lengths: Float32Array, upper: number, J: number, j: number, grid: Grid): Float32Array {
  const map = new Float32Array(grid.rows * grid.columns);
  for (let i = 0; i < lengths.length; i++) map[Math.floor(i / grid.types)] += lengths[i] * coefficients[i * J + j] * upper;
  return map;
}
