/** Everything a person can set, flat, with the value it starts from; only what differs stands in the address. */

export const SCREENS = ['look', 'dimensions', 'routing', 'overlap', 'affine', 'guide'] as const;
export const INPUTS = ['test', 'draw', 'overlay', 'upload'] as const;
export const TRANSFORMS = ['rotate', 'shift-x', 'shift-y', 'scale', 'shear'] as const;
export const GROUPS = ['type', 'position', 'top'] as const;

export type Screen = (typeof SCREENS)[number];
export type InputMode = (typeof INPUTS)[number];
export type Transform = (typeof TRANSFORMS)[number];
export type Group = (typeof GROUPS)[number];

export const START = {
  screen: 'look' as Screen,
  model: '',
  rival: '',
  set: '', // of test images
  input: 'test' as InputMode,
  index: 98,
  label: -1,
  mistakes: false,
  strokes: '',
  centre: true,
  first: 44,
  second: 286,
  firstX: -4,
  firstY: 0,
  secondX: 4,
  secondY: 0,
  upload: '',
  invert: 'auto' as 'auto' | 'yes' | 'no',
  capsule: -1, // the longest one
  moves: [] as number[],
  range: 'quarter' as 'quarter' | 'sigma',
  keepLength: false,
  rounds: 0, // as many as the model has
  iteration: 0, // the last one
  group: 'position' as Group,
  strongest: 24,
  byHand: false,
  handStep: 0,
  handVotes: [] as number[],
  other: -1,
  transform: 'rotate' as Transform,
  at: 20,
  card: -1,
};

export type Fields = typeof START;

const CHOICES: Partial<Record<keyof Fields, readonly string[]>> = {
  screen: SCREENS,
  input: INPUTS,
  transform: TRANSFORMS,
  group: GROUPS,
  range: ['quarter', 'sigma'],
  invert: ['auto', 'yes', 'no'],
};

/** Numbers that have an end; all are whole, and those left out are counted from 0. */
const ENDS: Partial<Record<keyof Fields, readonly [lowest: number, highest: number]>> = {
  label: [-1, Infinity],
  firstX: [-Infinity, Infinity],
  firstY: [-Infinity, Infinity],
  secondX: [-Infinity, Infinity],
  secondY: [-Infinity, Infinity],
  capsule: [-1, Infinity],
  rounds: [0, 10],
  strongest: [4, 60],
  other: [-1, Infinity],
  at: [0, 40],
  card: [-1, Infinity],
};

/** The part of the address after `#`. */
export function toAddress(fields: Fields): string {
  const parts: string[] = [];
  for (const key of Object.keys(START) as (keyof Fields)[]) {
    const text = written(fields[key]);
    if (text !== written(START[key])) parts.push(`${key}=${encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%40', '@')}`);
  }
  return parts.join('&');
}

/** Read an address; what is missing or makes no sense keeps its start value. */
export function fromAddress(address: string): Fields {
  const given = new URLSearchParams(address.replace(/^#/, '').replaceAll('+', '%2B'));
  const fields = structuredClone(START) as Record<string, unknown>;
  for (const key of Object.keys(START) as (keyof Fields)[]) {
    const text = given.get(key);
    const value = text === null ? undefined : parsed(START[key], text);
    if (value !== undefined && allowed(key, value)) fields[key] = value;
  }
  return fields as Fields;
}

/** What stands in an address and means nothing, as it stands there. */
export function unreadable(address: string): string[] {
  const given = new URLSearchParams(address.replace(/^#/, '').replaceAll('+', '%2B'));
  return [...given].filter(([name, text]) => {
    if (!Object.hasOwn(START, name)) return true;
    const key = name as keyof Fields;
    const value = parsed(START[key], text);
    return value === undefined || !allowed(key, value);
  }).map(([name, text]) => `${name}=${text}`);
}

function allowed(key: keyof Fields, value: unknown): boolean {
  if (typeof value === 'string') return CHOICES[key]?.includes(value) ?? true;
  if (typeof value !== 'number') return true;
  const [lowest, highest] = ENDS[key] ?? [0, Infinity];
  return Number.isInteger(value) && value >= lowest && value <= highest;
}

function written(value: string | number | boolean | number[]): string {
  if (Array.isArray(value)) return value.some((item) => item !== 0) ? value.map((item) => +item.toFixed(4)).join(',') : '';
  return typeof value === 'boolean' ? (value ? '1' : '0') : String(value);
}

function parsed(start: unknown, text: string): unknown {
  if (typeof start === 'boolean') return text === '1';
  if (typeof start === 'string') return text;
  if (Array.isArray(start)) {
    const list = text === '' ? [] : text.split(',').map(Number);
    return list.every(Number.isFinite) ? list : undefined;
  }
  const number = Number(text);
  return text !== '' && Number.isFinite(number) ? number : undefined;
}
