/** A name that fits into so many letters; what is left out is shown as dots. */
export function shortened(name: string, letters: number): string {
  return name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
}

/** “a 3”, “an 8”, “an Ankle boot”: by how the name begins when it is read aloud. */
export function withArticle(name: string): string {
  return `${/^([aeio]|8|1[18]$)/i.test(name) ? 'an' : 'a'} ${name}`;
}
