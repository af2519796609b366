import { watched } from './waiting.svelte';

/** One request in flight; of those that wait, only the latest is sent. */
export class Latest<Query, Result> {
  private running = false;
  private waiting: { query: Query } | null = null;
  private generation = 0;

  constructor(
    private readonly work: (query: Query) => Promise<Result>,
    private readonly done: (result: Result, query: Query) => void,
    private readonly failed: (error: Error, query: Query) => void,
  ) {}

  ask(query: Query): void {
    this.waiting = { query };
    if (!this.running) void this.run();
  }

  /** Forget what waits, and what is on its way. */
  cancel(): void {
    this.waiting = null;
    this.generation++;
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.waiting) {
      const { query } = this.waiting;
      this.waiting = null;
      const generation = this.generation;
      try {
        const result = await watched(this.work(query));
        if (generation === this.generation) this.done(result, query);
      } catch (error) {
        if (generation === this.generation) this.failed(error as Error, query);
      }
    }
    this.running = false;
  }
}
