/** The picture that a capsule draws: in the page where it can, else by the server. */

import { Latest } from '../data/latest';
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
    async ({ vector, classIndex }: Wanted) =>
      session.backend!.decode(session.model!, session.id, Float32Array.from(vector!), classIndex),
    (pixels) => (remote = pixels),
    (error) => session.fail(error),
  );
  $effect(() => {
    const query = wanted();
    if (query.vector && session.model?.decoder?.kind === 'convolutional') requests.ask(query);
  });
  return {
    get pixels() {
      return local ?? remote;
    },
  };
}
