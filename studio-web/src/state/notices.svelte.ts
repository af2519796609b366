/** What a link, or a person, asked for and is not here: said in a line each, until it is read or something else is asked. */

import { untrack } from 'svelte';

export const notices = $state({ lines: [] as readonly string[] });

/** Say it once. */
export function notice(words: string): void {
  untrack(() => {
    if (!notices.lines.includes(words)) notices.lines = [...notices.lines, words];
  });
}

export function dismiss(words: string): void {
  notices.lines = notices.lines.filter((each) => each !== words);
}

export function beginAnew(words: readonly string[] = []): void {
  notices.lines = words;
}
