import { describe, expect, it, vi } from 'vitest';
import { Latest } from '../src/data/latest';
import { remembered } from '../src/data/remembered';
import { pythonSnippet } from '../src/data/snippet';
import type { Model } from '../src/data/types';
import { waiting, watched } from '../src/data/waiting.svelte';
import { fromAddress, START, toAddress, unreadable, type Fields } from '../src/state/fields';
import { groupLinks, heat, placeOf } from '../src/state/groups';
import { handState, handVotes, LAST_STEP } from '../src/state/hand';
import { moved } from '../src/state/moved';
import { packBytes, unpackBytes } from '../src/state/pack';
import { presentIndex, settled } from '../src/state/settled';
import { isRight, listed, namedClasses, sameClasses } from '../src/state/verdict';

describe('address', () => {
  it('is empty at the start', () => expect(toAddress(structuredClone(START))).toBe(''));
  it('brings everything back', () => {
    const fields: Fields = {
      ...structuredClone(START), screen: 'dimensions', model: 'run-1@500', input: 'overlay', firstX: -7, keepLength: true, moves: [0, 0.25, -0.1],
    };
    expect(fromAddress(`#${toAddress(fields)}`)).toEqual(fields);
  });
  it('keeps the start value where an address makes no sense', () => {
    expect(fromAddress('#screen=nowhere&index=many&moves=a,b&unknown=1&input=draw')).toEqual({ ...START, input: 'draw' });
  });
  it('takes whole numbers within their ends only', () => {
    expect(fromAddress('#index=-5&capsule=1.5&at=41&rounds=400&strongest=1e6&handStep=0.5&card=-2&firstX=0.5')).toEqual(START);
    expect(fromAddress('#index=7&capsule=-1&at=40&rounds=10&firstX=-3')).toEqual({ ...START, index: 7, at: 40, rounds: 10, firstX: -3 });
  });
});

describe('what an address says that means nothing', () => {
  it('is known, as it stands there', () => {
    expect(unreadable('#model=a@5&index=98&firstX=-3&moves=0,0.25&keepLength=1&rounds=0')).toEqual([]);
    expect(unreadable('#index=-5&screen=nowhere&colour=red&moves=a,b&rounds=11')).toEqual(['index=-5', 'screen=nowhere', 'colour=red', 'moves=a,b', 'rounds=11']);
  });
});

describe('what is shown of what an address asks', () => {
  const model = (id: string, more: Partial<Model> = {}): Model =>
    ({ id, name: id, kind: 'capsnet', image_shape: [1, 28, 28], classes: ['0', '1'], checkpoints: [], examples: 'digits', ...more }) as Model;
  const run = model('run', { checkpoints: [100, 200, 500].map((step) => ({ step, id: `run@${step}` })) });
  const models = [model('first'), run, model('plain', { kind: 'cnn' }), model('other', { kind: 'cnn' }), model('wide', { kind: 'cnn', image_shape: [1, 36, 36] })];
  const shown = (asked: Partial<Fields>, live = true) => settled({ ...START, ...asked }, models, live);

  it('is the first where nothing is asked, without a word, and named from then on', () => {
    expect(shown({})).toMatchObject({ id: 'first', rival: 'plain', set: 'digits', missing: [] });
  });
  it('is what is asked where it is here', () => {
    expect(shown({ model: 'run@200', rival: 'other', set: 'digits' })).toMatchObject({ id: 'run@200', rival: 'other', model: run, missing: [] });
  });
  it('is another network with a word of how to get the one that was meant', () => {
    const { id, missing } = shown({ model: 'mine' });
    expect(id).toBe('first');
    expect(missing).toEqual(['There is no model mine here; first is shown. For mine, start the studio with its folder or name: torchcaps studio mine']);
    expect(shown({ model: 'mine@7' }, false).missing).toEqual(['There is no model mine in this export; first is shown.']);
  });
  it('is the nearest checkpoint with a word', () => {
    expect(shown({ model: 'run@240' })).toMatchObject({ id: 'run@200', model: run });
    expect(shown({ model: 'run@240' }).missing[0]).toContain('no checkpoint of step 240; step 200 is the nearest');
    expect(shown({ model: 'first@9' })).toMatchObject({ id: 'first' });
    expect(shown({ model: 'first@9' }).missing[0]).toContain('its newest weights are shown');
  });
  it('is a plain network beside another where it has no capsules', () => {
    expect(shown({ model: 'other' })).toMatchObject({ id: 'first', rival: 'other' });
    expect(shown({ model: 'other' }).missing[0]).toContain('has no capsules');
  });
  it('says that a plain network or a set of test images is not here', () => {
    expect(shown({ rival: 'gone' }).missing[0]).toContain('no plain network gone here; plain stands beside first');
    expect(shown({ rival: 'wide' })).toMatchObject({ rival: 'plain', missing: [] }); // of another task: a network was chosen since
    expect(shown({ set: 'clothes' }).missing[0]).toContain('about the test images clothes; here first has digits');
    expect(shown({ set: 'clothes', input: 'draw' }).missing).toEqual([]);
  });
});

describe('a test image that is not here', () => {
  const examples = { name: 'digits', count: 50 };
  it('is another one with a word', () => {
    expect(presentIndex(49, examples, null, 0)).toEqual({ index: 49, missing: null });
    expect(presentIndex(50, examples, null, 1)).toEqual({ index: 1, missing: 'digits has the test images 0 to 49 here and no 50; 1 is shown.' });
    expect(presentIndex(7, examples, [3, 9], 1)).toEqual({ index: 9, missing: 'digits has 2 test images here and no 7; 9 is shown.' });
    expect(presentIndex(7, examples, [], 0)).toEqual({ index: 7, missing: null }); // a filter that lets nothing through
  });
});

describe('the verdict', () => {
  const scores = Float32Array.of(0.1, 0.8, 0.6, 0.7);
  it('is on as many classes as there are things, or on those that are there', () => {
    expect(namedClasses(scores, 1, 0.5)).toEqual([1]);
    expect(namedClasses(scores, 2, 0.5)).toEqual([1, 3]);
    expect(namedClasses(scores, 0, 0.5)).toEqual([1, 3, 2]);
    expect(namedClasses(Float32Array.of(0.1, 0.2), 0, 0.5)).toEqual([]);
  });
  it('is right for exactly the true classes, and unknown where they are', () => {
    expect(isRight([1, 3], [3, 1])).toBe(true);
    expect(isRight([1], [3, 1])).toBe(false);
    expect(isRight([1, 3, 2], [3, 1])).toBe(false);
    expect(isRight([], [])).toBe(true);
    expect(isRight([1], null)).toBe(null);
    expect(sameClasses([3, 8], [3, 3])).toBe(false);
  });
  it('is said in words', () => {
    expect([[], [1], [1, 2], [1, 2, 3]].map((classes) => listed(classes, String))).toEqual(['no class', '1', '1 and 2', '1, 2 and 3']);
  });
});

describe('what was read', () => {
  it('is kept, but not where it failed', async () => {
    const kept = new Map<string, Promise<number>>();
    let reads = 0;
    const read = async (): Promise<number> => {
      if (++reads === 1) throw new Error('no answer');
      return reads;
    };
    await expect(remembered(kept, 'seven', read)).rejects.toThrow('no answer');
    expect(await remembered(kept, 'seven', read)).toBe(2);
    expect(await remembered(kept, 'seven', read)).toBe(2);
  });
});

describe('packed bytes', () => {
  it('come back', () => {
    const bytes = Uint8Array.from({ length: 784 }, (_, n) => (n % 100 < 60 ? 0 : n % 256));
    expect(unpackBytes(packBytes(bytes))).toEqual(bytes);
    expect(packBytes(new Uint8Array(784)).length).toBeLessThan(20);
  });
  it('of a cut address are nothing', () => expect(unpackBytes('%%%')).toEqual(new Uint8Array(0)));
});

describe('moved capsule', () => {
  const vector = Float32Array.of(0.6, 0, 0.8);
  it('moves one dimension', () => expect(moved(vector, [0, 0.5], false)[1]).toBeCloseTo(0.5));
  it('keeps its length when asked', () => expect(Math.hypot(...moved(vector, [0, 0.5], true))).toBeCloseTo(1));
});

describe('groups of links', () => {
  const grid = { rows: 2, columns: 3, types: 4 };
  const [I, J] = [24, 2];
  const lengths = Float32Array.from({ length: I }, (_, i) => (i + 1) / I);
  const coefficients = Float32Array.from({ length: I * J }, (_, n) => (n % J === 0 ? 0.25 : 0.75));

  it('know their place', () => expect(placeOf(17, grid)).toEqual({ row: 1, column: 1, type: 1 }));
  it.each([['type', 4], ['position', 6], ['top', 5]] as const)('%s: shares sum to 1', (group, count) => {
    const groups = groupLinks(coefficients, lengths, J, grid, group, 5, 0);
    expect(groups.length).toBe(count);
    for (const { shares } of groups) expect(shares[0] + shares[1]).toBeCloseTo(1);
  });
  it('top takes the strongest', () => {
    expect(groupLinks(coefficients, lengths, J, grid, 'top', 2, 1).map((group) => group.members[0])).toEqual([23, 22]);
  });
  it('a large grid comes in at most 64 blocks', () => {
    const large = { rows: 14, columns: 14, types: 1 };
    const groups = groupLinks(new Float32Array(196 * J).fill(0.5), new Float32Array(196).fill(1), J, large, 'position', 5, 0);
    expect(groups.length).toBe(49);
  });
  it('heat is length × coefficient × length', () => {
    const map = heat(coefficients, lengths, 0.5, J, 1, grid);
    expect(map[0]).toBeCloseTo((0.75 * 0.5 * (1 + 2 + 3 + 4)) / I);
  });
});

describe('routing by hand', () => {
  it('starts equal and ends with each child at its parent', () => {
    const votes = handVotes([]);
    expect([...handState(votes, 1).coefficients]).toEqual(Array(10).fill(0.5));
    const { coefficients, iteration, phase } = handState(votes, LAST_STEP);
    expect([iteration, phase]).toEqual([3, 'agreement']);
    for (const child of [0, 1, 2]) expect(coefficients[2 * child]).toBeGreaterThan(0.6);
    for (const child of [3, 4]) expect(coefficients[2 * child]).toBeLessThan(0.4);
  });
});

describe('one request in flight', () => {
  it('skips what is out of date', async () => {
    const sent: number[] = [];
    const got: number[] = [];
    const release: (() => void)[] = [];
    const latest = new Latest(
      (query: number) => new Promise<number>((resolve) => { sent.push(query); release.push(() => resolve(query)); }),
      (result) => got.push(result),
      () => undefined,
    );
    [1, 2, 3].forEach((query) => latest.ask(query));
    expect(sent).toEqual([1]);
    release[0]();
    await new Promise((resolve) => setTimeout(resolve));
    expect(sent).toEqual([1, 3]);
    release[1]();
    await new Promise((resolve) => setTimeout(resolve));
    expect(got).toEqual([1, 3]);
  });
});

describe('a request that failed', () => {
  it('is noticed unless it is out of date', async () => {
    const failed: number[] = [];
    const latest = new Latest(async (query: number) => Promise.reject(new Error(String(query))), () => undefined, (_, query) => failed.push(query));
    [1, 2, 3].forEach((query) => latest.ask(query));
    await new Promise((resolve) => setTimeout(resolve));
    expect(failed).toEqual([3]);
  });
});

describe('the Python of an export', () => {
  const model = { source: 'shipped', examples: 'mnist-sample', in_page: true, standardized: false, leaky: true } as Model;
  const picture = { pixels: new Uint8Array(4), shape: [1, 2, 2], labels: null, things: 1, file: null, example: 3 } as const;
  const program = (changes: Partial<Model>): string =>
    pythonSnippet({ ...model, ...changes }, 'a', new URLSearchParams('kind=routing&iterations=3'), picture);
  it('prepares the pixels as the network wants them', () => {
    expect(program({})).not.toContain('Standardize');
    expect(program({ standardized: true })).toContain('image = Standardize().evaluate(image)\nwith torch.no_grad():');
  });
  it('routes as the network does', () => {
    expect(program({})).toContain('leaky=True');
    expect(program({ in_page: false })).toContain('model(image, return_trace=True)');
  });
});

describe('waiting', () => {
  it('is said after a moment, and for each answer by itself', async () => {
    vi.useFakeTimers();
    const release: (() => void)[] = [];
    const answer = (): Promise<void> => watched(new Promise<void>((resolve) => release.push(resolve)));
    const answers = [answer()];
    await vi.advanceTimersByTimeAsync(200);
    answers.push(answer());
    release[0]();
    await answers[0];
    await vi.advanceTimersByTimeAsync(200);
    expect(waiting.late).toBe(0); // quick answers, one after the other
    await vi.advanceTimersByTimeAsync(200);
    expect(waiting.late).toBe(1);
    release[1]();
    await answers[1];
    expect(waiting.late).toBe(0);
    vi.useRealTimers();
  });
});
