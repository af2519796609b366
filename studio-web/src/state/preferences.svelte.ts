/** What a person wants always, whatever is on the screen; kept in the browser. */

const KEY = 'torchcaps-studio-shortcuts';

function load(): boolean {
  try {
    return localStorage.getItem(KEY) !== 'off';
  } catch {
    return true;
  }
}

export const preferences = $state({ shortcuts: load() });

/** Single letters can get in the way of speech input. */
export function setShortcuts(on: boolean): void {
  preferences.shortcuts = on;
  try {
    localStorage.setItem(KEY, on ? 'on' : 'off');
  } catch {
    // a browser that forbids storage forgets it when the page is closed
  }
}
