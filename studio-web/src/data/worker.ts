/** The encoder beside the page: a large network takes a moment, and the page must not stand still meanwhile. */

import { Encoder, type Encoded } from '../maths/encoder';
import { readTensors } from '../maths/tensors';
import { remembered } from './remembered';

export interface EncodeRequest {
  readonly ticket: number;
  readonly file: string; // address of the encoder's weights
  readonly leaky: boolean;
  readonly image: Float32Array;
  readonly shape: readonly number[];
}

export interface EncodeReply {
  readonly ticket: number;
  readonly encoded?: Encoded;
  readonly error?: string;
}

const encoders = new Map<string, Promise<Encoder>>();

async function load(file: string, leaky: boolean): Promise<Encoder> {
  const response = await fetch(file);
  if (!response.ok) throw new Error(`the encoder's weights are missing from this export (${response.status})`);
  return new Encoder(readTensors(await response.arrayBuffer()), leaky);
}

self.onmessage = async ({ data }: MessageEvent<EncodeRequest>) => {
  const { ticket, file, leaky, image, shape } = data;
  try {
    const encoder = await remembered(encoders, file, () => load(file, leaky));
    const encoded = encoder.encode(image, shape);
    self.postMessage({ ticket, encoded } satisfies EncodeReply);
  } catch (error) {
    self.postMessage({ ticket, error: (error as Error).message } satisfies EncodeReply);
  }
};
