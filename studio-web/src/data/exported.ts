/** Answers from a folder that `torchcaps studio export` wrote: the page runs the network itself. */

import { Decoder } from '../maths/decoder';
import type { Encoded } from '../maths/encoder';
import { route } from '../maths/routing';
import { lengths } from '../maths/squash';
import { floats } from '../maths/tensors';
import { TRANSFORM_STEPS, toBytes, toFloats, transformed, transformValues, type Picture } from '../picture/picture';
import { pythonSnippet } from './snippet';
import { getJson, getTensors, RequestError } from './fetching';
import { affineAnswer, readExample, readStatistics } from './live';
import { decodeFile } from './decode_file';
import type { Answer, Backend, Example, Examples, Model } from './types';
import type { EncodeReply, EncodeRequest } from './worker';

export function exportedBackend(version: string): Backend {
  const encode = encoderWorker();
  const examples = new Map<number, Promise<Example>>();
  const listing = getJson<Examples>('data/examples.json');

  async function exported(picture: Picture): Promise<boolean> {
    return picture.example !== null && ((await listing).indices?.includes(picture.example) ?? false);
  }

  async function answerOf(model: Model, image: Float32Array): Promise<Answer> {
    const { votes } = await encode(model, image);
    const capsules = route(votes, model.iterations ?? 3).at(-1)!.outputs;
    return { capsules, lengths: lengths(capsules, votes.D) };
  }

  return {
    live: false,
    version,
    models: () => getJson<Model[]>('data/models.json'),
    async examples({ label }) {
      const all = await listing;
      const indices = (all.indices ?? []).filter((_, n) => label < 0 || all.labels?.[n].includes(label));
      return { ...all, indices: indices.sort((a, b) => a - b) };
    },
    example(index) {
      if (!examples.has(index)) examples.set(index, readExample(`data/examples/${index}.safetensors`));
      return examples.get(index)!;
    },
    async answer(model, _id, picture) {
      if (model.routing === 'dynamic') return answerOf(model, toFloats(picture.pixels));
      if (!(await exported(picture))) throw new RequestError('this export can only show its own examples with this model');
      const { tensors } = await getTensors(`data/models/${model.id}/examples/${picture.example}/forward.safetensors`);
      return { lengths: floats(tensors.lengths), capsules: floats(tensors.capsules) };
    },
    async probabilities(model, picture) {
      if (!(await exported(picture))) return null;
      const { tensors } = await getTensors(`data/models/${model.id}/examples/${picture.example}/forward.safetensors`);
      return floats(tensors.probabilities);
    },
    async decoder(model) {
      if (model.decoder?.kind !== 'fully-connected') return null;
      return new Decoder(await getTensors(`data/models/${model.id}/decoder.safetensors`));
    },
    async decode() {
      throw new RequestError('this decoder needs the live studio: start torchcaps studio');
    },
    async votes(model, _id, picture) {
      return encode(model, toFloats(picture.pixels));
    },
    async trace() {
      throw new RequestError('this routing needs the live studio: start torchcaps studio');
    },
    statistics: (model) => readStatistics(`data/models/${model.id}/statistics.safetensors`),
    async affine(model, _id, picture, kind) {
      if (await exported(picture)) {
        return affineAnswer((await getTensors(`data/models/${model.id}/examples/${picture.example}/affine-${kind}.safetensors`)).tensors);
      }
      if (model.kind === 'cnn' || model.routing !== 'dynamic') return null;
      const values = transformValues(kind, picture.shape);
      const image = toFloats(picture.pixels);
      const images = new Uint8Array(TRANSFORM_STEPS * image.length);
      const all = new Float32Array(TRANSFORM_STEPS * model.classes.length);
      for (let n = 0; n < TRANSFORM_STEPS; n++) {
        const moved = transformed(image, picture.shape, kind, values[n]);
        images.set(toBytes(moved), n * image.length);
        all.set((await answerOf(model, moved)).lengths, n * model.classes.length);
      }
      return { values: Float32Array.from(values), lengths: all, images };
    },
    upload: (model, file, invert) => decodeFile(file, model.image_shape, model.digits, invert),
    python: async (model, id, query, picture) => pythonSnippet(model, id, query, picture),
  };
}

function encoderWorker(): (model: Model, image: Float32Array) => Promise<Encoded> {
  let worker: Worker | null = null;
  let tickets = 0;
  const waiting = new Map<number, { resolve: (encoded: Encoded) => void; reject: (error: Error) => void }>();
  return (model, image) => {
    worker ??= startWorker(waiting);
    const request: EncodeRequest = {
      ticket: tickets++,
      file: new URL(`data/models/${model.id}/encoder.safetensors`, document.baseURI).href,
      leaky: model.leaky ?? false,
      image,
      shape: model.image_shape,
    };
    return new Promise((resolve, reject) => {
      waiting.set(request.ticket, { resolve, reject });
      worker!.postMessage(request);
    });
  };
}

function startWorker(waiting: Map<number, { resolve: (encoded: Encoded) => void; reject: (error: Error) => void }>): Worker {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }: MessageEvent<EncodeReply>) => {
    const answer = waiting.get(data.ticket);
    waiting.delete(data.ticket);
    if (data.encoded) answer?.resolve(data.encoded);
    else answer?.reject(new RequestError(data.error ?? 'the encoder stopped'));
  };
  return worker;
}
