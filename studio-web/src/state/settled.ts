/** An address may name a network that is not here: which one is shown in its place, and how to get the one that was meant. */

import type { Examples, Model } from '../data/types';
import type { Fields } from './fields';

export interface Settled {
  /** Ids as they stand in the address from now on; of the model, or of its checkpoint. */
  readonly id: string;
  readonly rival: string;
  readonly set: string;
  /** The model of that id, and the plain networks for the same pictures. */
  readonly model: Model | null;
  readonly rivals: readonly Model[];
  /** What was asked for and is not here, a sentence or two each. */
  readonly missing: readonly string[];
}

export function settled(asked: Pick<Fields, 'model' | 'rival' | 'set' | 'input'>, models: readonly Model[], live: boolean): Settled {
  const networks = models.filter((model) => model.kind === 'capsnet');
  const [name, step] = asked.model.split('@');
  const model = networks.find((each) => each.id === name) ?? networks[0] ?? null;
  if (!model) return { id: '', rival: asked.rival, set: asked.set, model, rivals: [], missing: [] };
  const missing: string[] = [];
  let id = model.id;
  if (name && name !== model.id) missing.push(absent(name, model, models, live));
  else if (step !== undefined) {
    const checkpoint = nearest(model, Number(step));
    id = checkpoint?.id ?? model.id;
    if (id !== asked.model) {
      const instead = checkpoint ? `step ${checkpoint.step} is the nearest that is left, and is shown` : 'its newest weights are shown';
      const how = live ? 'log.keep in the recipe says how many checkpoints training keeps.' : 'An export has no checkpoints.';
      missing.push(`${model.name} has no checkpoint of step ${step}; ${instead}. ${how}`);
    }
  }
  const rivals = models.filter((each) => each.kind === 'cnn' && sameTask(each, model));
  const wanted = models.find((each) => each.kind === 'cnn' && each.id === (name === model.id || !name ? asked.rival : name));
  const rival = rivals.find((each) => each === wanted) ?? rivals[0];
  if (asked.rival && !models.some((each) => each.id === asked.rival)) {
    missing.push(`There is no plain network ${asked.rival} here; ${rival ? `${rival.name} stands` : 'none stands'} beside ${model.name}.`);
  }
  const set = model.examples ?? '';
  if (asked.set && asked.set !== set && (asked.input === 'test' || asked.input === 'overlay')) {
    const here = set ? `has ${set}` : 'has none of its own';
    missing.push(`The link is about the test images ${asked.set}; here ${model.name} ${here}, so another picture may be shown.${live ? ' To choose test images, start the studio with --data.' : ''}`);
  }
  return { id, rival: rival?.id ?? '', set, model, rivals, missing };
}

/** An index that is there, where an export holds a few only: the n-th of them in place of one that it lacks. */
export function presentIndex(
  index: number, examples: Pick<Examples, 'name' | 'count'>, indices: readonly number[] | null, n: number,
): { readonly index: number; readonly missing: string | null } {
  const some = indices?.length ? indices : null;
  if (some ? some.includes(index) : index < examples.count) return { index, missing: null };
  const instead = some ? some[n % some.length] : n % examples.count;
  const there = some ? `${some.length} test images` : `the test images 0 to ${examples.count - 1}`;
  return { index: instead, missing: `${examples.name} has ${there} here and no ${index}; ${instead} is shown.` };
}

function absent(name: string, shown: Model, models: readonly Model[], live: boolean): string {
  if (models.some((each) => each.id === name)) return `${name} is a plain network, which has no capsules to look into; ${shown.name} is shown.`;
  return live
    ? `There is no model ${name} here; ${shown.name} is shown. For ${name}, start the studio with its folder or name: torchcaps studio ${name}`
    : `There is no model ${name} in this export; ${shown.name} is shown.`;
}

function nearest(model: Model, step: number): Model['checkpoints'][number] | null {
  const distance = (checkpoint: Model['checkpoints'][number]): number => Math.abs(checkpoint.step - step);
  return [...model.checkpoints].sort((a, b) => distance(a) - distance(b))[0] ?? null;
}

function sameTask(some: Model, other: Model): boolean {
  return some.image_shape.join() === other.image_shape.join() && some.classes.join() === other.classes.join();
}
