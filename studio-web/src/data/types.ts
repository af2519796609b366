/** What a server, or an exported folder, tells about models and examples. */

import type { Decoder } from '../maths/decoder';
import type { Encoded } from '../maths/encoder';
import type { Picture, Shape } from '../picture/picture';
import type { Transform } from '../state/fields';

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly kind: 'capsnet' | 'cnn';
  readonly architecture: string;
  readonly parameters?: number;
  readonly image_shape: Shape;
  readonly classes: readonly string[];
  readonly routing: string | null;
  readonly iterations: number | null;
  readonly leaky: boolean | null;
  /** What the lengths are: of the vectors, or activations that the routing computes in their place. */
  readonly scores: 'lengths' | 'activations' | null;
  /** Over what the coefficients sum to 1. */
  readonly normalizes: 'parents' | 'children' | 'nothing' | null;
  /** True where the page's own loop, from the votes, routes as the network does. */
  readonly in_page: boolean;
  /** True where the network is shown pixels that were brought to mean 0, which the page does not do. */
  readonly standardized: boolean;
  readonly capsule_dim: number | null;
  /** Null where no single grid of lower capsules votes for the classes. */
  readonly primary: { readonly rows: number; readonly columns: number; readonly types: number; readonly dim: number; readonly stride: number } | null;
  readonly decoder: { readonly kind: 'fully-connected' | 'convolutional'; readonly sizes: readonly number[] } | null;
  readonly source: 'shipped' | 'run' | 'folder';
  readonly checkpoints: readonly { readonly step: number; readonly id: string }[];
  readonly test_error: number | null;
  /** It reads handwritten digits, which are cut out of an upload. */
  readonly digits: boolean;
  /** What it learned from is white on black: ink on paper is inverted. */
  readonly white_on_black: boolean;
  /** No class is there where no score is above this. */
  readonly presence: number;
  /** How many things a picture shows; 0 where it may be any number. */
  readonly multi: number;
  /** Name of its set of test images. */
  readonly examples: string | null;
}

export interface Examples {
  /** Id of the set. */
  readonly source: string;
  readonly count: number;
  readonly classes: readonly string[];
  readonly image_shape: Shape;
  readonly name: string;
  readonly indices: readonly number[] | null;
  /** Of each of the indices, where they have names. */
  readonly files?: readonly string[] | null;
  /** Of each of the indices, in an export. */
  readonly labels?: readonly (readonly number[])[];
}

export interface Example {
  readonly pixels: Uint8Array;
  readonly shape: Shape;
  readonly labels: readonly number[];
  /** How many a picture of the set shows; 0 where it may be any number. */
  readonly things: number;
  readonly file: string | null;
}

/** Answer of a capsule network. */
export interface Answer {
  readonly lengths: Float32Array; // [J]
  readonly capsules: Float32Array; // [J, D]
}

/** A routing that PyTorch ran, with as many iterations as the network has. */
export interface TraceAnswer {
  readonly primaryLengths: Float32Array; // [I]
  readonly coefficients: Float32Array[]; // R of [I, J]
  readonly outputs: Float32Array[]; // R of [J, D]
  readonly lengths: Float32Array[]; // R of [J]
}

export interface Statistics {
  readonly mean: Float32Array; // [J, D]
  readonly std: Float32Array; // [J, D]
}

export interface AffineAnswer {
  readonly values: Float32Array; // [N]
  readonly lengths: Float32Array; // [N, J]
  readonly images: Uint8Array; // [N, C, H, W]
}

export interface ExampleFilter {
  readonly source: string | null;
  readonly label: number; // −1: any
  readonly mistakesOf: string | null;
}

/** Where the answers come from. */
export interface Backend {
  /** True where a server answers, false for an exported folder. */
  readonly live: boolean;
  readonly version: string;
  models(): Promise<Model[]>;
  examples(filter: ExampleFilter): Promise<Examples>;
  example(index: number, source: string | null): Promise<Example>;
  answer(model: Model, id: string, picture: Picture): Promise<Answer>;
  /** Probabilities [J] of a plain network, or null where an export does not hold them. */
  probabilities(model: Model, picture: Picture): Promise<Float32Array | null>;
  decoder(model: Model, id: string): Promise<Decoder | null>;
  /** Draw capsules [N, D] of one class, where the page cannot do it itself: [N, C, H, W]. */
  decode(model: Model, id: string, capsules: Float32Array, classIndex: number): Promise<Float32Array>;
  votes(model: Model, id: string, picture: Picture): Promise<Encoded>;
  trace(model: Model, id: string, picture: Picture): Promise<TraceAnswer>;
  statistics(model: Model, id: string): Promise<Statistics>;
  affine(model: Model, id: string, picture: Picture, kind: Transform): Promise<AffineAnswer | null>;
  upload(model: Model, file: Blob, invert: 'auto' | 'yes' | 'no'): Promise<{ pixels: Uint8Array; inverted: boolean }>;
  python(model: Model, id: string, query: URLSearchParams, picture: Picture): Promise<string>;
}
