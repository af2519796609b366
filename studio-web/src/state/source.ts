/** From the chosen input to one picture. */

import type { Backend, Model } from '../data/types';
import { centred, scaled } from '../picture/centre';
import { paintPacked, SIDE } from '../picture/drawing';
import { added, placed, spread, toBytes, type Picture, type Shape } from '../picture/picture';
import type { Fields } from './fields';
import { unpackBytes } from './pack';

/** What the picture depends on; equal texts give equal pictures. */
export function sourceKey(fields: Fields, model: Model): string {
  const size = model.image_shape.join('×');
  switch (fields.input) {
    case 'test':
      return `test ${size} ${model.examples} ${fields.index}`;
    case 'draw':
      return `draw ${size} ${fields.centre} ${fields.strokes}`;
    case 'overlay':
      return ['overlay', size, fields.first, fields.second, fields.firstX, fields.firstY, fields.secondX, fields.secondY].join(' ');
    case 'upload':
      return `upload ${size} ${fields.upload}`;
  }
}

/** Of a picture that nobody has labelled. */
const UNKNOWN = { labels: null, file: null, example: null };

export async function makePicture(fields: Fields, model: Model, backend: Backend): Promise<Picture> {
  const shape = model.image_shape;
  switch (fields.input) {
    case 'test': {
      const example = await backend.example(fields.index, model.examples);
      const same = example.shape.join() === shape.join();
      const pixels = same ? example.pixels : placed(example.pixels, example.shape, shape);
      const labels = trueClasses(example.labels, model);
      return { pixels, shape, labels, things: labels ? example.things : model.multi, file: example.file, example: same ? fields.index : null };
    }
    case 'draw':
      return { ...UNKNOWN, pixels: drawnPixels(fields.strokes, fields.centre, shape), shape, things: model.multi };
    case 'overlay': {
      const { first, second, labels } = await overlayParts(fields, model, backend);
      return { ...UNKNOWN, pixels: added(first, second), shape, labels, things: model.multi === 0 ? 0 : 2 };
    }
    case 'upload': {
      const pixels = unpackBytes(fields.upload);
      const size = shape[0] * shape[1] * shape[2];
      return { ...UNKNOWN, pixels: pixels.length === size ? pixels : new Uint8Array(size), shape, things: model.multi };
    }
  }
}

export function drawnPixels(strokes: string, centre: boolean, shape: Shape): Uint8Array {
  const ink = paintPacked(strokes);
  const fit = centre ? centred : scaled;
  return spread(toBytes(fit(ink, SIDE, shape[1], shape[2])), shape[0]);
}

/** Single digits to lay over each other: a network for pairs has pairs as test images. */
export function overlaySource(model: Model): string | null {
  return model.multi > 1 ? 'mnist-sample' : model.examples;
}

/** Labels are classes of the network only where the test images are its own. */
function trueClasses(labels: readonly number[], model: Model): readonly number[] | null {
  return model.examples !== null && labels.every((label) => label < model.classes.length) ? labels : null;
}

export async function overlayParts(
  fields: Fields, model: Model, backend: Backend,
): Promise<{ first: Uint8Array; second: Uint8Array; labels: readonly number[] | null }> {
  const { first: a, second: b, firstX, firstY, secondX, secondY } = fields;
  const source = overlaySource(model);
  const [first, second] = await Promise.all([backend.example(a, source), backend.example(b, source)]);
  const shape = model.image_shape;
  return {
    first: placed(first.pixels, first.shape, shape, firstX, firstY),
    second: placed(second.pixels, second.shape, shape, secondX, secondY),
    labels: trueClasses([...first.labels, ...second.labels], model),
  };
}
