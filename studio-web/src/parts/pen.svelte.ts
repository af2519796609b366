/** A pen that the arrow keys move: held keys add up, so that two at once go diagonally. */

import { SIDE } from '../picture/drawing';

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const STEP = 6;
const SMALL_STEP = 2;
const MARGIN = 8;

export class Pen {
  x = $state(SIDE / 2);
  y = $state(SIDE / 4);
  down = $state(false);
  shown = $state(false);
  private readonly held = new Set<string>();

  constructor(
    private readonly begin: (x: number, y: number) => void,
    private readonly extend: (x: number, y: number) => void,
    private readonly end: () => void,
  ) {}

  /** True when the key was the pen's. */
  press(event: KeyboardEvent): boolean {
    if (event.key === ' ') {
      if (event.repeat) return true;
      if (this.down) this.lift();
      else {
        this.down = true;
        this.begin(this.x, this.y);
      }
      return true;
    }
    if (!(event.key in ARROWS)) return false;
    this.held.add(event.key);
    const step = event.shiftKey ? SMALL_STEP : STEP;
    for (const key of this.held) {
      this.x = limited(this.x + step * ARROWS[key][0]);
      this.y = limited(this.y + step * ARROWS[key][1]);
    }
    if (this.down) this.extend(this.x, this.y);
    return true;
  }

  release(event: KeyboardEvent): void {
    this.held.delete(event.key);
  }

  lift(): void {
    if (this.down) this.end();
    this.down = false;
  }

  hide(): void {
    this.lift();
    this.held.clear();
    this.shown = false;
  }
}

function limited(value: number): number {
  return Math.max(MARGIN, Math.min(SIDE - MARGIN, value));
}
