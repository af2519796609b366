/** Answers from `torchcaps studio`. */

import { Decoder } from '../maths/decoder';
import type { Encoded } from '../maths/encoder';
import { floats, tensorOf, type Tensor } from '../maths/tensors';
import { toBytes, toFloats, type Picture, type Shape } from '../picture/picture';
import { getJson, getTensors, getText, postBytes, postForText, postTensors } from './fetching';
import { remembered } from './remembered';
import type { AffineAnswer, Backend, Example, ExampleFilter, Examples, Model, Statistics, TraceAnswer } from './types';

const LARGEST_BATCH = 64;

export function liveBackend(version: string): Backend {
  const examples = new Map<string, Promise<Example>>();
  return {
    live: true,
    version,
    models: () => getJson<Model[]>('api/models'),
    examples: (filter) => getJson<Examples>(`api/examples${exampleQuery(filter)}`),
    example(index, source) {
      const path = `api/examples/${index}${source ? `?source=${encodeURIComponent(source)}` : ''}`;
      if (examples.size >= 200 && !examples.has(path)) examples.delete(examples.keys().next().value!);
      return remembered(examples, path, () => readExample(path));
    },
    async answer(_model, id, picture) {
      const { tensors } = await postTensors(`api/models/${id}/forward`, { images: oneImage(picture, true) });
      return { lengths: floats(tensors.lengths), capsules: floats(tensors.capsules) };
    },
    async probabilities(model, picture) {
      const { tensors } = await postTensors(`api/models/${model.id}/forward`, { images: oneImage(picture, true) });
      return floats(tensors.probabilities);
    },
    async decoder(model, id) {
      if (model.decoder?.kind !== 'fully-connected') return null;
      return new Decoder(await getTensors(`api/models/${id}/decoder?dtype=f32`));
    },
    async decode(model, id, capsules, classIndex) {
      const [J, D] = [model.classes.length, model.capsule_dim!];
      const parts: Float32Array[] = [];
      for (let start = 0; start < capsules.length / D; start += LARGEST_BATCH) {
        const B = Math.min(LARGEST_BATCH, capsules.length / D - start);
        const masked = new Float32Array(B * J * D);
        for (let b = 0; b < B; b++) {
          masked.set(capsules.subarray((start + b) * D, (start + b + 1) * D), (b * J + classIndex) * D);
        }
        const { tensors } = await postTensors(`api/models/${id}/decode`, { capsules: tensorOf(masked, B, J, D) });
        parts.push(floats(tensors.pictures));
      }
      return joined(parts);
    },
    async votes(model, id, picture) {
      const { tensors } = await postTensors(`api/models/${id}/votes`, { image: oneImage(picture, false) });
      return votesAnswer(tensors, model);
    },
    async trace(_model, id, picture) {
      return traceAnswer((await postTensors(`api/models/${id}/trace`, { image: oneImage(picture, false) })).tensors);
    },
    statistics: (_model, id) => readStatistics(`api/models/${id}/statistics`),
    async affine(_model, id, picture, kind) {
      const { tensors } = await postTensors(`api/models/${id}/affine?kind=${kind}`, { image: oneImage(picture, false) });
      return affineAnswer(tensors);
    },
    async upload(model, file, invert) {
      const answer = await postBytes(`api/upload?model=${model.id}&invert=${invert}`, file);
      return { pixels: toBytes(floats(answer.tensors.image)), inverted: answer.metadata.inverted === 'true' };
    },
    python(model, id, query, picture) {
      const path = `api/models/${id}/python?${query}`;
      if (picture.example === null || !model.examples) return postForText(path, { image: oneImage(picture, false) });
      return getText(`${path}&index=${picture.example}&source=${encodeURIComponent(model.examples)}`);
    },
  };
}

export async function readExample(path: string): Promise<Example> {
  const { tensors, metadata } = await getTensors(path);
  return {
    pixels: tensors.image.data as Uint8Array,
    shape: tensors.image.shape as Shape,
    labels: JSON.parse(metadata.labels) as number[],
    things: Number(metadata.things),
    file: metadata.file ?? null,
  };
}

export async function readStatistics(path: string): Promise<Statistics> {
  const { tensors } = await getTensors(path);
  return { mean: floats(tensors.mean), std: floats(tensors.std) };
}

export function votesAnswer(tensors: Record<string, Tensor>, model: Model): Encoded {
  const [I, J, D] = tensors.votes.shape;
  const bias = tensors.bias ? floats(tensors.bias) : null;
  return {
    votes: { I, J, D, values: floats(tensors.votes), bias, leaky: model.leaky ?? false },
    primaryLengths: floats(tensors.primary_lengths),
  };
}

export function traceAnswer(tensors: Record<string, Tensor>): TraceAnswer {
  return {
    primaryLengths: floats(tensors.primary_lengths),
    coefficients: rows(tensors.coefficients),
    outputs: rows(tensors.outputs),
    lengths: rows(tensors.lengths),
  };
}

export function affineAnswer(tensors: Record<string, Tensor>): AffineAnswer {
  return { values: floats(tensors.values), lengths: floats(tensors.lengths), images: tensors.images.data as Uint8Array };
}

/** Split along the first axis. */
function rows(tensor: Tensor): Float32Array[] {
  const size = tensor.data.length / tensor.shape[0];
  return Array.from({ length: tensor.shape[0] }, (_, r) => floats(tensor).slice(r * size, (r + 1) * size));
}

function oneImage(picture: Picture, batch: boolean): Tensor {
  return tensorOf(toFloats(picture.pixels), ...(batch ? [1] : []), ...picture.shape);
}

function joined(parts: Float32Array[]): Float32Array {
  const result = new Float32Array(parts.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  return result;
}

function exampleQuery({ source, label, mistakesOf }: ExampleFilter): string {
  const query = new URLSearchParams();
  if (source) query.set('source', source);
  if (label >= 0) query.set('label', String(label));
  if (mistakesOf) query.set('only_mistakes_of', mistakesOf);
  return query.size ? `?${query}` : '';
}
