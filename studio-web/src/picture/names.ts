/** A name that fits into so many letters; what is left out is shown as dots. */
export function shortened(name: string, letters: number): string {
  return name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
}
