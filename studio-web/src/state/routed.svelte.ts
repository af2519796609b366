/** The routing of the present picture: in the page from its votes, or by PyTorch for other algorithms. */

import { Latest } from '../data/latest';
import type { Model } from '../data/types';
import { route } from '../maths/routing';
import { lengths as lengthsOf } from '../maths/squash';
import type { Picture } from '../picture/picture';
import { session } from './session.svelte';
import { studio } from './studio.svelte';

export interface RoutingStep {
  readonly coefficients: Float32Array; // [I, J]
  readonly outputs: Float32Array; // [J, D]
  readonly lengths: Float32Array; // [J]
}

export interface Routed {
  readonly primaryLengths: Float32Array; // [I]
  readonly steps: readonly RoutingStep[];
}

interface Query {
  picture: Picture;
  model: Model;
  id: string;
}

export function routedPicture(): { readonly value: Routed | null; readonly rounds: number } {
  let votes = $state.raw<Awaited<ReturnType<NonNullable<typeof session.backend>['votes']>> | null>(null);
  let traced = $state.raw<Routed | null>(null);
  const rounds = $derived(studio.rounds || (session.model?.iterations ?? 3));
  const inPage = $derived(session.model?.in_page ?? false);
  const fail = (error: Error): void => session.fail(error);

  const voting = new Latest(({ picture, model, id }: Query) => session.backend!.votes(model, id, picture), (answer) => (votes = answer), fail);
  const tracing = new Latest(
    async ({ picture, model, id }: Query): Promise<Routed> => {
      const { primaryLengths, coefficients, outputs, lengths } = await session.backend!.trace(model, id, picture);
      return { primaryLengths, steps: coefficients.map((each, r) => ({ coefficients: each, outputs: outputs[r], lengths: lengths[r] })) };
    },
    (answer) => (traced = answer),
    fail,
  );

  $effect(() => {
    const { picture, model, id } = session;
    if (!picture || !model) return;
    (inPage ? voting : tracing).ask({ picture, model, id });
  });
  const value = $derived.by((): Routed | null => {
    const fits = (J?: number, I?: number): boolean => J === session.model?.classes.length && I === capsulesOf(session.model);
    if (!inPage) return fits(traced?.steps[0].lengths.length, traced?.primaryLengths.length) ? traced : null;
    if (!fits(votes?.votes.J, votes?.primaryLengths.length)) return null;
    const { D } = votes!.votes;
    const steps = route(votes!.votes, rounds).map(({ coefficients, outputs }) => ({ coefficients, outputs, lengths: lengthsOf(outputs, D) }));
    return { primaryLengths: votes!.primaryLengths, steps };
  });
  return {
    get value() {
      return value;
    },
    get rounds() {
      return inPage ? rounds : (value?.steps.length ?? session.model?.iterations ?? 1); // another routing has its own
    },
  };
}

/** Lower capsules of a model; votes for another one are not shown. */
function capsulesOf(model: Model | null): number {
  return model?.primary ? model.primary.rows * model.primary.columns * model.primary.types : -1;
}
