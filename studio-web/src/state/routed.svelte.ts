/** The routing of the present picture: in the page from its votes, or by the server for other algorithms. */

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
  rounds: number;
}

export function routedPicture(): { readonly value: Routed | null; readonly rounds: number } {
  let votes = $state.raw<Awaited<ReturnType<NonNullable<typeof session.backend>['votes']>> | null>(null);
  let traced = $state.raw<Routed | null>(null);
  const rounds = $derived(studio.rounds || (session.model?.iterations ?? 3));
  const inPage = $derived(session.model?.routing === 'dynamic');
  const fail = (error: Error): void => void (session.error = error.message);

  const voting = new Latest(({ picture, model, id }: Query) => session.backend!.votes(model, id, picture), (answer) => (votes = answer), fail);
  const tracing = new Latest(
    async ({ picture, model, id, rounds: R }: Query) => {
      const [trace, { primaryLengths }] = await Promise.all([
        session.backend!.trace(model, id, picture, R),
        session.backend!.votes(model, id, picture),
      ]);
      const steps = trace.coefficients.map((coefficients, r) => withLengths(coefficients, trace.outputs[r], model.capsule_dim!));
      return { primaryLengths, steps };
    },
    (answer) => (traced = answer),
    fail,
  );

  $effect(() => {
    const { picture, model, id } = session;
    if (!picture || !model) return;
    if (inPage) voting.ask({ picture, model, id, rounds: 0 });
    else tracing.ask({ picture, model, id, rounds });
  });
  const value = $derived.by((): Routed | null => {
    if (!inPage) return traced?.steps[0]?.lengths.length === session.model?.classes.length ? traced : null;
    if (votes?.votes.J !== session.model?.classes.length || votes?.primaryLengths.length !== capsulesOf(session.model)) return null;
    const { D } = votes!.votes;
    const steps = route(votes!.votes, rounds).map((step) => withLengths(step.coefficients, step.outputs, D));
    return { primaryLengths: votes!.primaryLengths, steps };
  });
  return {
    get value() {
      return value;
    },
    get rounds() {
      return inPage ? rounds : (traced?.steps.length ?? rounds); // another routing has iterations of its own
    },
  };
}

/** Lower capsules of a model; votes for another one are not shown. */
function capsulesOf(model: Model | null): number {
  return model?.primary ? model.primary.rows * model.primary.columns * model.primary.types : -1;
}

function withLengths(coefficients: Float32Array, outputs: Float32Array, D: number): RoutingStep {
  return { coefficients, outputs, lengths: lengthsOf(outputs, D) };
}
