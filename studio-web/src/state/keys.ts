/** Keys that work everywhere but in a text field. */

import { downloadScreen } from '../picture/export';
import { dialogs } from './dialogs.svelte';
import { SCREENS } from './fields';
import { preferences } from './preferences.svelte';
import { session } from './session.svelte';
import { studio } from './studio.svelte';
import { switchTheme } from './theme';

const ACTIONS: Record<string, () => void> = {
  r: randomExample,
  '[': () => stepExample(-1),
  ']': () => stepExample(1),
  p: () => (dialogs.code = true),
  s: downloadScreen,
  e: () => (dialogs.equations = true),
  t: switchTheme,
  '?': () => (dialogs.keys = true),
};

/** A key of the browser or the system, such as Alt ← to go back. */
export function withModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/** Whether a single letter is meant for the page: not while typing, in a dialog, or where the person wants none. */
export function isShortcut(event: KeyboardEvent): boolean {
  if (withModifier(event) || event.defaultPrevented) return false;
  if (!preferences.shortcuts && event.key !== '?') return false;
  const target = event.target as HTMLElement;
  const typing = target.matches('input[type="text"], input[type="number"], textarea, select') || target.isContentEditable;
  return !typing && !document.querySelector('dialog[open]');
}

export function shortcut(event: KeyboardEvent): void {
  if (!isShortcut(event)) return;
  const screen = SCREENS[Number(event.key) - 1];
  if (screen) {
    studio.screen = screen;
    if (screen === 'guide') studio.card = -1;
  } else if (event.key in ACTIONS) ACTIONS[event.key]();
  else return;
  event.preventDefault();
}

export function randomExample(): void {
  const count = session.chosen?.length ?? session.examples?.count ?? 0;
  if (count === 0) return;
  const n = Math.floor(Math.random() * count);
  showExample(session.chosen ? session.chosen[n] : n);
}

/** The next one that the filter lets through. */
export function stepExample(step: 1 | -1): void {
  const count = session.examples?.count ?? 0;
  if (count === 0) return; // not loaded yet
  if (!session.chosen) return showExample((studio.index + step + count) % count);
  const later = step > 0
    ? (session.chosen.find((index) => index > studio.index) ?? session.chosen[0])
    : (session.chosen.findLast((index) => index < studio.index) ?? session.chosen.at(-1));
  if (later !== undefined) showExample(later);
}

export function showExample(index: number): void {
  studio.input = 'test';
  studio.index = index;
  studio.capsule = -1;
}
