/** The picture that a capsule draws: in the page where it can, else by the server. */

import { Latest } from '../data/latest';
import type { Model } from '../data/types';
import { session } from './session.svelte';

interface Wanted {
  readonly vector: ArrayLike<number> | null;
  readonly classIndex: number;
}

export function drawnCapsule(wanted: () => Wanted): { readonly pixels: Float32Array | null } {
  let remote = $state.raw<Float32Array | null>(null);
  const local = $derived.by(() => {
    const { vector, classIndex } = wanted();
    return session.decoder && vector ? session.decoder.draw(vector, classIndex) : null;
  });
  const requests = new Latest(
    async ({ vector, classIndex, model, id }: Wanted & { model: Model; id: string }) =>
      session.backend!.decode(model, id, Float32Array.from(vector!), classIndex),
    (pixels) => (remote = pixels),
    (error) => session.fail(error),
  );
  $effect(() => {
    const [query, model, id] = [wanted(), session.model, session.id];
    if (query.vector && model?.decoder?.kind === 'convolutional') requests.ask({ ...query, model, id });
  });
  return {
    get pixels() {
      return local ?? remote;
    },
  };
}
