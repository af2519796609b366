/** Names that people give to the dimensions of a capsule; kept in the browser. */

const KEY = 'torchcaps-studio-names';

function load(): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, string>;
  } catch {
    return {};
  }
}

let names: Record<string, string> = $state(load());

window.addEventListener('storage', ({ key }) => {
  if (key === KEY) names = load(); // given in another tab, which would else be overwritten by this one
});

export function nameOf(model: string, capsule: number, dimension: number): string {
  return names[`${model}/${capsule}/${dimension}`] ?? '';
}

export function giveName(model: string, capsule: number, dimension: number, name: string): void {
  const key = `${model}/${capsule}/${dimension}`;
  if (name.trim()) names[key] = name.trim();
  else delete names[key];
  try {
    localStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // a browser that forbids storage keeps the names until the page is closed
  }
}
