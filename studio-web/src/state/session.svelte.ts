/** The running session: models, the present picture and what the networks say of it. */

import { untrack } from 'svelte';

import { exportedBackend } from '../data/exported';
import { getJson, NoAnswer } from '../data/fetching';
import { Latest } from '../data/latest';
import { liveBackend } from '../data/live';
import { watched } from '../data/waiting.svelte';
import type { Answer, Backend, Examples, Model, Statistics } from '../data/types';
import type { Decoder } from '../maths/decoder';
import type { Picture } from '../picture/picture';
import { valueFor, type For } from './answers';
import type { Fields } from './fields';
import { makePicture, overlaySource, sourceKey } from './source';
import { studio } from './studio.svelte';

const TRAINING_LOOK = 5000; // milliseconds between looks at a run
const SERVER_LOOK = 2000; // and for a server that has gone

interface Config {
  static: boolean;
  version: string;
}

class Session {
  backend = $state.raw<Backend | null>(null);
  models = $state.raw<Model[]>([]);
  examples = $state.raw<Examples | null>(null);
  /** Test images that the filter lets through; null: all. */
  chosen = $state.raw<readonly number[] | null>(null);
  /** The person has set the filter. One from an address, or of another network, leaves the picture as it is. */
  choosing = false;
  /** Test images that an export holds; null: a server has them all. */
  private written = $state.raw<readonly number[] | null>(null);
  /** Single things to lay over each other. */
  digits = $state.raw<Examples | null>(null);
  private lastPicture = $state.raw<For<Picture> | null>(null);
  private lastAnswer = $state.raw<For<Answer> | null>(null);
  private lastRivalAnswer = $state.raw<For<Float32Array | null> | null>(null);
  decoder = $state.raw<Decoder | null>(null);
  statistics = $state.raw<Statistics | null>(null);
  /** Statistics are on their way. */
  measuring = $state(false);
  error = $state('');
  spoken = $state('');
  private search = 0;

  /** The capsule network in use. */
  model = $derived.by((): Model | null => {
    const networks = this.models.filter((model) => model.kind === 'capsnet');
    const holds = (model: Model): boolean =>
      model.id === studio.model || model.checkpoints.some((checkpoint) => checkpoint.id === studio.model);
    return networks.find(holds) ?? networks[0] ?? null;
  });
  /** Its id in the server's paths: a checkpoint's where one is chosen. */
  id = $derived.by((): string => {
    if (!this.model) return '';
    const known = this.model.checkpoints.some((checkpoint) => checkpoint.id === studio.model);
    return known ? studio.model : this.model.id;
  });
  /** Plain networks for the same pictures. */
  rivals = $derived(
    this.models.filter(
      (model) =>
        model.kind === 'cnn' &&
        model.image_shape.join() === this.model?.image_shape.join() &&
        model.classes.join() === this.model?.classes.join(),
    ),
  );
  rival = $derived(this.rivals.find((model) => model.id === studio.rival) ?? this.rivals[0] ?? null);

  // What came for another model is not shown under this one's name.
  picture = $derived(valueFor(this.model, this.lastPicture));
  answer = $derived(valueFor(this.model, this.lastAnswer));
  rivalAnswer = $derived(valueFor(this.rival, this.lastRivalAnswer));
  /** Whether the answer is to this picture; the last one stays until the next one comes. */
  answered = $derived(this.lastAnswer?.picture === this.picture && this.lastAnswer?.id === this.id);
  rivalAnswered = $derived(this.lastRivalAnswer?.picture === this.picture);

  order = $derived.by((): number[] => {
    const lengths = this.answer?.lengths;
    return lengths ? [...lengths.keys()].sort((a, b) => lengths[b] - lengths[a]) : [];
  });
  /** Nothing is drawn or uploaded yet. */
  blank = $derived(this.picture?.pixels.every((pixel) => pixel === 0) ?? true);
  winner = $derived(this.order[0] ?? 0);
  second = $derived(this.order[1] ?? 0);
  /** The two longest: the first digit of an overlay is orange wherever it is found, the other blue. */
  pair = $derived.by((): readonly [orange: number, blue: number] => {
    const labels = this.picture?.labels ?? [];
    const turned = labels.length === 2 && (labels[0] === this.second || labels[1] === this.winner);
    return turned && labels[0] !== this.winner ? [this.second, this.winner] : [this.winner, this.second];
  });
  /** Two things are in the picture, or the network looks for two. */
  two = $derived((this.model?.multi ?? 1) > 1 || studio.input === 'overlay');
  /** The class capsule that the screens look at. */
  capsule = $derived(
    studio.capsule >= 0 && studio.capsule < (this.model?.classes.length ?? 0) ? studio.capsule : this.winner,
  );
  vector = $derived.by((): Float32Array | null => {
    const D = this.model?.capsule_dim;
    return this.answer && D ? this.answer.capsules.slice(this.capsule * D, (this.capsule + 1) * D) : null;
  });

  private readonly pictures = new Latest(
    async ({ fields, model }: { fields: Fields; model: Model }) => makePicture(fields, model, this.backend!),
    (value, { model }) => (this.lastPicture = { model: model.id, value }),
    (error) => this.fail(error),
  );
  private readonly answers = new Latest(
    async ({ picture, id, model }: { picture: Picture; id: string; model: Model }) =>
      this.backend!.answer(model, id, picture),
    (value, { picture, id, model }) => {
      this.lastAnswer = { model: model.id, id, picture, value };
      this.askRival(picture, this.rival);
    },
    (error) => {
      this.fail(error);
      if (!this.backend!.live) this.lastAnswer = null; // it will not come; the last one is of another picture
    },
  );
  private readonly rivalAnswers = new Latest(
    async ({ picture, model }: { picture: Picture; model: Model }) => this.backend!.probabilities(model, picture),
    (value, { model, picture }) => (this.lastRivalAnswer = { model: model.id, picture, value }),
    (error) => this.fail(error),
  );

  /** Classes are words, which need more room than digits and are no digits. */
  get inWords(): boolean {
    return (this.model?.classes ?? []).some((name) => name.length > 3);
  }

  className(index: number): string {
    return this.model?.classes[index] ?? String(index);
  }

  /** Look at a class capsule on every screen; chosen once more, at the longest again. */
  choose(j: number): void {
    studio.capsule = studio.capsule === j ? -1 : j;
    if (studio.screen === 'dimensions') studio.moves = [];
  }

  async start(): Promise<void> {
    try {
      const config = await getJson<Config>('config.json');
      const backend = config.static ? exportedBackend(config.version) : liveBackend(config.version);
      const [models, examples] = await Promise.all([backend.models(), backend.examples({ source: null, label: -1, mistakesOf: null })]);
      this.backend = backend;
      this.examples = examples;
      this.chosen = examples.indices;
      this.models = models;
      if (!this.model) this.error = 'No capsule network is loaded. Start the studio with a checkpoint or a shipped name.';
      this.written = examples.indices;
    } catch (error) {
      this.fail(error as Error);
    }
  }

  /** Say what went wrong. Where nobody answers, begin anew as soon as somebody does: what was missed is asked for again. */
  fail(error: Error): void {
    this.error = error.message;
    if (error instanceof NoAnswer) this.search ||= window.setInterval(() => void this.lookForServer(), SERVER_LOOK);
  }

  private async lookForServer(): Promise<void> {
    const found = await getJson<Config>('config.json').then(() => true, () => false);
    if (!found || !this.search) return;
    clearInterval(this.search);
    this.search = 0;
    this.error = '';
    await this.start();
  }

  private pictureKey = $derived(this.model && sourceKey(studio, this.model));
  /** When one of these changes, what failed is asked for anew, or no longer matters. */
  private asked = $derived([this.pictureKey, this.id, studio.screen, studio.transform, studio.range, studio.label, studio.mistakes].join());

  /** Effects that keep the answers in step with what is set; called inside a component. */
  follow(): void {
    $effect(() => {
      if (this.asked && untrack(() => this.model) && !this.search) this.error = '';
    });
    $effect(() => this.stayWithin());
    $effect(() => {
      const model = this.model;
      if (!this.pictureKey || !model || !this.backend || !this.indicesFit(model)) return;
      this.pictures.ask({ fields: untrack(() => $state.snapshot(studio)), model });
    });
    $effect(() => {
      const [picture, id, model] = [this.picture, this.id, this.model];
      if (picture && model) this.answers.ask({ picture, id, model });
    });
    $effect(() => {
      const rival = this.rival;
      untrack(() => this.askRival(this.picture, rival));
    });
    $effect(() => this.watchTraining(this.model));
    $effect(() => this.loadParts(this.model, this.id));
    $effect(() => this.filterExamples(this.model?.examples ?? null, studio.label, studio.mistakes && this.model?.examples ? this.id : null));
    $effect(() => this.countDigits(this.model));
  }

  /** The guide, or an address, may name a picture that an export lacks, or a class that no picture has. */
  private stayWithin(): void {
    const digits = this.digits?.indices;
    const classes = this.model?.examples ? this.model.classes : this.examples?.classes;
    if (classes && studio.label >= classes.length) studio.label = -1;
    if (this.written?.length) studio.index = nearest(studio.index, this.written, 0);
    if (digits?.length) [studio.first, studio.second] = [nearest(studio.first, digits, 1), nearest(studio.second, digits, 2)];
  }

  /** Another model may have fewer test images; a picture is asked for when its index exists. */
  indicesFit(model: Model): boolean {
    const within = (index: number, examples: Examples | null, source: string | null): boolean =>
      examples !== null && (source === null || examples.source === source) && index < examples.count;
    if (studio.input === 'test') return within(studio.index, this.examples, model.examples);
    if (studio.input !== 'overlay') return true;
    return [studio.first, studio.second].every((index) => within(index, this.digits, overlaySource(model)));
  }

  /** A run may still be training: new checkpoints appear by themselves. */
  private watchTraining(model: Model | null): (() => void) | void {
    if (model?.source !== 'run' || !this.backend?.live) return;
    const timer = setInterval(async () => {
      if (document.hidden) return;
      const models = await this.backend!.models().catch(() => this.models); // the next look may find the server again
      if (JSON.stringify(models) !== JSON.stringify(this.models)) this.models = models;
    }, TRAINING_LOOK);
    return () => clearInterval(timer);
  }

  /** After the capsule network has answered: the two would only slow each other down. */
  private askRival(picture: Picture | null, model: Model | null): void {
    if (picture && model && picture.shape.join() === model.image_shape.join()) this.rivalAnswers.ask({ picture, model });
    else this.lastRivalAnswer = null;
  }

  private loadParts(model: Model | null, id: string): void {
    this.decoder = null;
    this.statistics = null;
    if (!model || !this.backend) return;
    this.backend.decoder(model, id).then((decoder) => id === this.id && (this.decoder = decoder), (error: Error) => this.fail(error));
  }

  private countDigits(model: Model | null): (() => void) | void {
    if (!model || !this.backend) return;
    let wanted = true;
    this.backend.examples({ source: overlaySource(model), label: -1, mistakesOf: null }).then(
      (examples) => {
        if (!wanted) return;
        [studio.first, studio.second] = [studio.first, studio.second].map((index, n) => (index < examples.count ? index : n % examples.count));
        this.digits = examples;
        this.stayWithin(); // before the two are fetched
      },
      (error: Error) => this.fail(error),
    );
    return () => (wanted = false);
  }

  /** Computed by the server over all test images, so only when a screen asks. */
  loadStatistics(): void {
    const [model, id] = [this.model, this.id];
    if (!model || !this.backend) return;
    this.measuring = true;
    this.backend.statistics(model, id).then((statistics) => id === this.id && (this.statistics = statistics), (error: Error) => this.fail(error))
      .finally(() => (this.measuring = false));
  }

  /** Where the person has just set the filter, the first picture that it lets through in place of one that it does not. */
  private stayChosen(): void {
    if (this.choosing && this.chosen?.length && !this.chosen.includes(studio.index)) {
      [studio.index, studio.capsule] = [this.chosen[0], -1];
    }
    this.choosing = false;
  }

  private filterExamples(source: string | null, label: number, mistakesOf: string | null): (() => void) | void {
    if (!this.backend) return;
    let wanted = true; // to find the mistakes takes a while, in which another filter may be set
    watched(this.backend.examples({ source, label, mistakesOf })).then(
      (examples) => {
        if (!wanted) return;
        this.examples = examples;
        this.chosen = examples.indices;
        if (studio.index >= examples.count) studio.index = 0;
        this.stayChosen();
      },
      (error: Error) => this.fail(error),
    );
    return () => (wanted = false);
  }
}

/** An export holds a few examples only: the n-th of them in place of one that it lacks. */
function nearest(index: number, indices: readonly number[], n: number): number {
  return indices.includes(index) ? index : indices[n % indices.length];
}

export const session = new Session();
