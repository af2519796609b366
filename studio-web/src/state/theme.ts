/** Light or dark: as the system says, until the person says otherwise. */

const KEY = 'torchcaps-studio-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

function show(): void {
  document.documentElement.dataset.theme = stored() ?? (system.matches ? 'dark' : 'light');
  window.dispatchEvent(new Event('themechange'));
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden
  }
}

export function startTheme(): void {
  system.addEventListener('change', show);
  show();
}

export function switchTheme(): void {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(KEY, next);
  } catch {
    document.documentElement.dataset.theme = next;
  }
  show();
}
