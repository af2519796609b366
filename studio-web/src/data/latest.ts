import { watched } from './waiting.svelte';

/** One request in flight; of those that wait, only the latest is sent. What failed and is out of date failed unnoticed. */
export class Latest<Query, Result> {
  private running = false;
  private waiting: { query: Query } | null = null;

  constructor(
    private readonly work: (query: Query) => Promise<Result>,
    private readonly done: (result: Result, query: Query) => void,
    private readonly failed: (error: Error, query: Query) => void,
  ) {}

  ask(query: Query): void {
    this.waiting = { query };
    if (!this.running) void this.run();
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.waiting) {
      const { query } = this.waiting;
      this.waiting = null;
      try {
        this.done(await watched(this.work(query)), query);
      } catch (error) {
        if (!this.waiting) this.failed(error as Error, query);
      }
    }
    this.running = false;
  }
}
