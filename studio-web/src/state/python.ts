/** What the Python snippet of the present screen is about, besides the picture. */

import { moved } from './moved';
import { session } from './session.svelte';
import { studio } from './studio.svelte';
import { transformValues } from '../picture/picture';

export function pythonQuery(): URLSearchParams {
  const kind = studio.screen === 'guide' ? 'look' : studio.screen;
  const query = new URLSearchParams({ kind });
  if (kind === 'dimensions' && session.vector) {
    query.set('capsule', String(session.capsule));
    query.set('vector', [...moved(session.vector, studio.moves, studio.keepLength)].map((value) => value.toFixed(6)).join(','));
  }
  if (kind === 'routing') query.set('iterations', String(studio.rounds || (session.model?.iterations ?? 3)));
  if (kind === 'affine' && session.model) {
    query.set('transform', studio.transform);
    query.set('value', String(transformValues(studio.transform, session.model.image_shape)[studio.at]));
  }
  return query;
}
