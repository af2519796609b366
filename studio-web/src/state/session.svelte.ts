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
import { START, type Fields } from './fields';
import { beginAnew, notice } from './notices.svelte';
import { presentIndex, settled } from './settled';
import { makePicture, overlaySource, sourceKey } from './source';
import { studio } from './studio.svelte';
import { isRight, listed, namedClasses } from './verdict';

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
  /** Those that the network in use gets wrong, where they were asked for. */
  mistakes = $state.raw<Examples | null>(null);
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

  private settled = $derived(settled(studio, this.models, this.backend?.live ?? true));
  /** The capsule network in use. */
  model = $derived(this.settled.model);
  /** Its id in the server's paths: a checkpoint's where one is chosen. */
  id = $derived(this.settled.id);
  /** Plain networks for the same pictures. */
  rivals = $derived(this.settled.rivals);
  rival = $derived(this.rivals.find((model) => model.id === this.settled.rival) ?? null);

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
  /** Not even the longest capsule says that its class is there. */
  absent = $derived(this.model !== null && (this.answer?.lengths[this.winner] ?? 1) <= this.model.presence);
  second = $derived(this.order[1] ?? 0);
  /** The two longest: the first digit of an overlay is orange wherever it is found, the other blue. */
  pair = $derived.by((): readonly [orange: number, blue: number] => {
    const labels = this.truth ?? [];
    const turned = labels.length === 2 && (labels[0] === this.second || labels[1] === this.winner);
    return turned && labels[0] !== this.winner ? [this.second, this.winner] : [this.winner, this.second];
  });
  /** The classes in the picture; null where nobody knows them. */
  truth = $derived(this.picture?.labels ?? null);
  /** The classes that the network names. */
  named = $derived(this.answer && this.picture && this.model ? namedClasses(this.answer.lengths, this.picture.things, this.model.presence) : []);
  /** Whether these are exactly the true ones; null where nobody knows, or before the answer. */
  right = $derived(this.answered ? isRight(this.named, this.truth) : null);
  /** The classes that the plain network names. */
  rivalNamed = $derived(this.rivalAnswer && this.picture && this.model ? namedClasses(this.rivalAnswer, this.picture.things, this.model.presence) : []);
  /** The network looks for two things, or two are laid over each other. */
  two = $derived(this.picture?.things === 2 || studio.input === 'overlay');
  /** The bars in colour; −1 where no second one is asked for. */
  marked = $derived<readonly [orange: number, blue: number]>(this.two ? this.pair : [this.winner, -1]);
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

  classNames(indices: readonly number[]): string {
    return listed(indices, (j) => this.className(j));
  }

  /** Another network or checkpoint, with the test images that it has. */
  show(id: string): void {
    Object.assign(studio, { model: id, set: '' });
    beginAnew();
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
    $effect(() => this.settle());
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

  /** The address names what is shown, so that it shows the same wherever it is opened. */
  private settle(): void {
    const { model, id, rival, set, missing } = this.settled;
    if (!model) return;
    missing.forEach(notice);
    Object.assign(studio, { model: id, rival, set });
    if (studio.capsule >= model.classes.length) {
      notice(`${model.name} has the classes 0 to ${model.classes.length - 1} and no class ${studio.capsule}; the longest capsule is shown.`);
      studio.capsule = -1;
    }
  }

  /** The guide, or an address, may name a picture that is not there, or a class that no picture has. */
  private stayWithin(): void {
    const classes = this.model?.examples ? this.model.classes : this.examples?.classes;
    if (classes && studio.label >= classes.length) {
      const highest = classes.length - 1;
      notice(`There are the classes 0 to ${highest} and no class ${studio.label}; test images of any class are shown.`);
      studio.label = -1;
    }
    if (this.model && this.isOf(this.examples, this.model.examples)) {
      studio.index = this.present('index', this.examples, this.written);
    }
    if (this.model && this.isOf(this.digits, overlaySource(this.model))) {
      studio.first = this.present('first', this.digits, this.digits.indices);
      studio.second = this.present('second', this.digits, this.digits.indices);
    }
  }

  private present(field: 'index' | 'first' | 'second', examples: Examples, indices: readonly number[] | null): number {
    const { index, missing } = presentIndex(studio[field], examples, indices, field === 'second' ? 1 : 0);
    if (missing && studio[field] !== START[field]) notice(missing); // nobody asked for the one that the page starts with
    return index;
  }

  private isOf(examples: Examples | null, source: string | null): examples is Examples {
    return examples !== null && (source === null || examples.source === source);
  }

  /** Another model may have fewer test images; a picture is asked for when its index exists. */
  indicesFit(model: Model): boolean {
    const within = (index: number, examples: Examples | null, source: string | null): boolean =>
      this.isOf(examples, source) && index < examples.count;
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
    this.mistakes = null;
    let wanted = true; // to find the mistakes takes a while, in which another filter may be set
    watched(this.backend.examples({ source, label, mistakesOf })).then(
      (examples) => {
        if (!wanted) return;
        this.examples = examples;
        this.chosen = examples.indices;
        if (mistakesOf) this.mistakes = examples;
        this.stayWithin();
        this.stayChosen();
      },
      (error: Error) => this.fail(error),
    );
    return () => (wanted = false);
  }
}

export const session = new Session();
