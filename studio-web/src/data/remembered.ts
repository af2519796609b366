/** Read once and kept; what failed is read again when it is asked for again. */
export function remembered<Value>(kept: Map<string, Promise<Value>>, key: string, read: () => Promise<Value>): Promise<Value> {
  const value = kept.get(key) ?? read();
  kept.set(key, value);
  value.catch(() => kept.delete(key));
  return value;
}
