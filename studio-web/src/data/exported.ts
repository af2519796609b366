/** Answers from a folder that `torchcaps studio export` wrote: the page runs the network itself. */

import { Decoder } from '../maths/decoder';
import type { Encoded } from '../maths/encoder';
import { route } from '../maths/routing';
import { lengths } from '../maths/squash';
import { floats, type Tensor } from '../maths/tensors';
import { TRANSFORM_STEPS, toBytes, toFloats, transformed, transformValues, type Picture } from '../picture/picture';
import { pythonSnippet } from './snippet';
import { getJson, getTensors, RequestError } from './fetching';
import { affineAnswer, readExample, readStatistics, traceAnswer, votesAnswer } from './live';
import { decodeFile } from './decode_file';
import { remembered } from './remembered';
import type { Answer, Backend, Example, Examples, Model } from './types';
import type { EncodeReply, EncodeRequest } from './worker';

export function exportedBackend(version: string): Backend {
  const encode = encoderWorker();
  const examples = new Map<string, Promise<Example>>();
  const listing = getJson<Examples>('data/examples.json');

  /** Where a set of pictures lies: a network for pairs has single digits beside its own, to lay over each other. */
  async function folder(source: string | null): Promise<string> {
    return source === null || source === (await listing).source ? 'examples' : 'singles';
  }

  async function exported(picture: Picture): Promise<boolean> {
    return picture.example !== null && ((await listing).indices?.includes(picture.example) ?? false);
  }

  /** What was written down for one of the export's examples. */
  async function written(model: Model, picture: Picture, file: string): Promise<Record<string, Tensor>> {
    if (!(await exported(picture))) {
      throw new RequestError('this network is shown for the examples of this export only; for others start torchcaps studio');
    }
    return (await getTensors(`data/models/${model.id}/examples/${picture.example}/${file}.safetensors`)).tensors;
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
    async examples({ source, label }) {
      const all = await getJson<Examples>(`data/${await folder(source)}.json`);
      const indices = (all.indices ?? []).filter((_, n) => label < 0 || all.labels?.[n].includes(label));
      return { ...all, indices: indices.sort((a, b) => a - b) };
    },
    async example(index, source) {
      const path = `data/${await folder(source)}/${index}.safetensors`;
      return remembered(examples, path, () => readExample(path));
    },
    async answer(model, _id, picture) {
      if (model.in_page) return answerOf(model, toFloats(picture.pixels));
      const tensors = await written(model, picture, 'forward');
      return { lengths: floats(tensors.lengths), capsules: floats(tensors.capsules) };
    },
    async probabilities(model, picture) {
      if (!(await exported(picture))) return null;
      return floats((await written(model, picture, 'forward')).probabilities);
    },
    async decoder(model) {
      if (model.decoder?.kind !== 'fully-connected') return null;
      return new Decoder(await getTensors(`data/models/${model.id}/decoder.safetensors`));
    },
    async decode() {
      throw new RequestError('this decoder needs the live studio: start torchcaps studio');
    },
    async votes(model, _id, picture) {
      if (model.in_page) return encode(model, toFloats(picture.pixels));
      return votesAnswer(await written(model, picture, 'votes'), model);
    },
    async trace(model, _id, picture) {
      return traceAnswer(await written(model, picture, 'trace'));
    },
    statistics: (model) => readStatistics(`data/models/${model.id}/statistics.safetensors`),
    async affine(model, _id, picture, kind) {
      if (model.kind === 'cnn' && !(await exported(picture))) return null;
      if (!model.in_page || (await exported(picture))) return affineAnswer(await written(model, picture, `affine-${kind}`));
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
