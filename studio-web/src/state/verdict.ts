/** What a network names, and whether it is right: the same on every screen. */

/** The classes that a network names, the surest first: as many as there are things, or (0) every one above `presence`. */
export function namedClasses(scores: ArrayLike<number>, things: number, presence: number): readonly number[] {
  const order = Array.from(scores, (_, j) => j).sort((a, b) => scores[b] - scores[a]);
  return things > 0 ? order.slice(0, things) : order.filter((j) => scores[j] > presence);
}

/** Right are exactly the true classes, in any order; null where nobody knows the truth. */
export function isRight(named: readonly number[], truth: readonly number[] | null): boolean | null {
  return truth === null ? null : sameClasses(named, truth);
}

export function sameClasses(some: readonly number[], others: readonly number[]): boolean {
  return some.length === new Set(others).size && others.every((j) => some.includes(j));
}

/** “3”, “3 and 5”, “cat, dog and owl”, or “no class”. */
export function listed(classes: readonly number[], name: (j: number) => string): string {
  const names = classes.map(name);
  if (names.length < 2) return names[0] ?? 'no class';
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)!}`;
}
