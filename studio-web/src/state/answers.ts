import type { Model } from '../data/types';
import type { Picture } from '../picture/picture';

/** An answer, and what it came for. */
export interface For<Value> {
  readonly model: string;
  /** Of a checkpoint, or the model's. */
  readonly id?: string;
  readonly picture?: Picture;
  readonly value: Value;
}

/** The answer, unless it came for another model. */
export function valueFor<Value>(model: Model | null, last: For<Value> | null): Value | null {
  return last && last.model === model?.id ? last.value : null;
}
