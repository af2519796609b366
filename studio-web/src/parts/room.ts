const LETTERS = 15; // pixels of the page's letters where the browser's are as usual

/** How wide to draw a graph in so many pixels, so that its words are as large as those around it. */
export function drawnWidth(room: number, narrowest: number, widest: number): number {
  const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / LETTERS;
  return Math.max(narrowest, Math.min(widest, room / letters));
}
