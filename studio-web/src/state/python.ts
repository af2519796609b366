/** What the Python snippet of the present screen is about, besides the picture. */

import type { Screen } from './fields';
import { moved } from './moved';
import { session } from './session.svelte';
import { studio } from './studio.svelte';
import { transformValues } from '../picture/picture';

/** A screen that has nothing to show of this network has no program of its own. */
function shownKind(): Screen {
  const possible: Record<Screen, unknown> = {
    look: true, affine: true, guide: false,
    dimensions: session.model?.decoder, overlap: session.model?.decoder, routing: session.model?.primary,
  };
  return possible[studio.screen] ? studio.screen : 'look';
}

export function pythonQuery(): URLSearchParams {
  const kind = shownKind();
  const query = new URLSearchParams({ kind });
  if (kind === 'dimensions' && session.vector) {
    query.set('capsule', String(session.capsule));
    query.set('vector', [...moved(session.vector, studio.moves, studio.keepLength)].map((value) => value.toFixed(6)).join(','));
  }
  if (kind === 'routing' && session.model?.in_page) query.set('iterations', String(studio.rounds || (session.model?.iterations ?? 3)));
  if (kind === 'affine' && session.model) {
    query.set('transform', studio.transform);
    query.set('value', String(transformValues(studio.transform, session.model.image_shape)[studio.at]));
  }
  return query;
}
