/** What the person set, kept in the address. */

import { fromAddress, START, toAddress, type Fields } from './fields';

export const studio: Fields = $state(fromAddress(location.hash));

let written = toAddress(studio);
let timer = 0;

/** Write the address a moment after the last change; a new screen is a new entry to go back from. */
export function keepAddress(): void {
  const address = toAddress(studio);
  clearTimeout(timer); // also where all is again as it was
  if (address === written) return;
  const step = screenOf(address) !== screenOf(written);
  const write = (): void => {
    written = address;
    history[step ? 'pushState' : 'replaceState'](null, '', `${location.pathname}${location.search}#${address}`);
  };
  if (step) write();
  else timer = window.setTimeout(write, 200);
}

function screenOf(address: string): string {
  return new URLSearchParams(address).get('screen') ?? START.screen;
}

/** Someone went back, or changed the address by hand; says whether there was anything to follow. */
export function followAddress(): boolean {
  if (location.hash.replace(/^#/, '') === written) return false;
  clearTimeout(timer);
  Object.assign(studio, fromAddress(location.hash));
  written = toAddress(studio);
  return true;
}
