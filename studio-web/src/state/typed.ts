/** The index in a field, brought within 0 … count − 1, which the field then shows; what is no number changes nothing. */
export function typedIndex(field: HTMLInputElement, present: number, count: number): number {
  const value = field.valueAsNumber;
  const index = Number.isFinite(value) ? Math.max(0, Math.min(count - 1, Math.round(value))) : present;
  field.value = String(index);
  return index;
}
