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

const EXAMPLES_ONLY = 'this network is shown for the examples of this export only; for others start torchcaps studio';

export function exportedBackend(version: string): Backend {
  const encode = encoderWorker();
  const examples = new Map<string, Promise<Example>>();
  const listing = getJson<Examples>('data/examples.json');

  /** Where a set of pictures lies: a network for pairs has single digits beside its own, to lay over each other. */
  async function folder(source: string | null): Promise<string> {
    return source === null || source === (await listing).source ? 'examples' : 'singles';
  }

  /** What was written down for one of the export's examples; null for any other picture. */
  async function written(model: Model, picture: Picture, file: string): Promise<Record<string, Tensor> | null> {
    if (picture.example === null || !(await listing).indices?.includes(picture.example)) return null;
    return (await getTensors(`data/models/${model.id}/examples/${picture.example}/${file}.safetensors`)).tensors;
  }

  async function votesOf(model: Model, pixels: Uint8Array): Promise<Encoded> {
    if (!model.in_page || model.standardized) throw new RequestError(EXAMPLES_ONLY);
    return encode(model, toFloats(pixels));
  }

  async function answerOf(model: Model, pixels: Uint8Array): Promise<Answer> {
    const { votes } = await votesOf(model, pixels);
    const capsules = route(votes, model.iterations ?? 3).at(-1)!.outputs;
    return { capsules, lengths: lengths(capsules, votes.D) };
  }

  return {
    live: false,
    version,
    models: () => getJson<Model[]>('data/models.json'),
    async examples({ source, label }) {
      const all = await getJson<Examples>(`data/${await folder(source)}.json`);
      const places = (all.indices ?? []).map((index, n) => ({ index, n })).filter(({ n }) => label < 0 || all.labels?.[n].includes(label));
      places.sort((a, b) => a.index - b.index);
      return { ...all, indices: places.map(({ index }) => index), files: all.files && places.map(({ n }) => all.files![n]) };
    },
    async example(index, source) {
      const path = `data/${await folder(source)}/${index}.safetensors`;
      return remembered(examples, path, () => readExample(path));
    },
    async answer(model, _id, picture) {
      const tensors = await written(model, picture, 'forward');
      return tensors ? { lengths: floats(tensors.lengths), capsules: floats(tensors.capsules) } : answerOf(model, picture.pixels);
    },
    async probabilities(model, picture) {
      const tensors = await written(model, picture, 'forward');
      return tensors && floats(tensors.probabilities);
    },
    async decoder(model) {
      if (model.decoder?.kind !== 'fully-connected') return null;
      return new Decoder(await getTensors(`data/models/${model.id}/decoder.safetensors`));
    },
    async decode() {
      throw new RequestError('this decoder needs the live studio: start torchcaps studio');
    },
    async votes(model, _id, picture) {
      const tensors = await written(model, picture, 'votes');
      return tensors ? votesAnswer(tensors, model) : votesOf(model, picture.pixels);
    },
    async trace(model, _id, picture) {
      const tensors = await written(model, picture, 'trace');
      if (!tensors) throw new RequestError(EXAMPLES_ONLY);
      return traceAnswer(tensors);
    },
    statistics: (model) => readStatistics(`data/models/${model.id}/statistics.safetensors`),
    async affine(model, _id, picture, kind) {
      const tensors = await written(model, picture, `affine-${kind}`);
      if (tensors) return affineAnswer(tensors);
      if (model.kind === 'cnn') return null;
      const values = transformValues(kind, picture.shape);
      const image = toFloats(picture.pixels);
      const images = new Uint8Array(TRANSFORM_STEPS * image.length);
      const all = new Float32Array(TRANSFORM_STEPS * model.classes.length);
      for (let n = 0; n < TRANSFORM_STEPS; n++) {
        const moved = toBytes(transformed(image, picture.shape, kind, values[n]));
        images.set(moved, n * moved.length);
        all.set((await answerOf(model, moved)).lengths, n * model.classes.length);
      }
      return { values: Float32Array.from(values), lengths: all, images };
    },
    upload: (model, file, invert) => decodeFile(file, model, invert),
    python: async (model, id, query, picture) => pythonSnippet(model, id, query, picture),
  };
}

/** Runs the encoder beside the page, from the first picture that needs it. */
function encoderWorker(): (model: Model, image: Float32Array) => Promise<Encoded> {
  let worker: Worker | null = null;
  let tickets = 0;
  const waiting = new Map<number, { resolve: (encoded: Encoded) => void; reject: (error: Error) => void }>();

  function started(): Worker {
    const begun = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
    begun.onmessage = ({ data }: MessageEvent<EncodeReply>) => {
      const answer = waiting.get(data.ticket);
      waiting.delete(data.ticket);
      if (data.encoded) answer?.resolve(data.encoded);
      else answer?.reject(new RequestError(data.error ?? 'the encoder stopped'));
    };
    begun.onerror = () => {
      waiting.forEach(({ reject }) => reject(new RequestError('the encoder cannot be started in this browser; for drawings start torchcaps studio')));
      waiting.clear();
      worker = null;
    };
    return begun;
  }

  return (model, image) => {
    worker ??= started();
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
