/** Answers that let people wait longer than a moment; the page says so while there are any. */

const MOMENT = 300; // milliseconds
export const waiting = $state({ late: 0 });

export async function watched<Result>(work: Promise<Result>): Promise<Result> {
  let late = 0;
  const timer = setTimeout(() => {
    late = 1;
    waiting.late += late;
  }, MOMENT);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    waiting.late -= late;
  }
}
