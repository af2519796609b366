import { session } from './session.svelte';

/** Say in words what the networks answered, once things have settled. */
export function speakAnswers(): void {
  $effect(() => {
    const { answer, answered, picture } = session;
    if (!answer || !answered || !picture || session.blank) return;
    const rivalAnswer = session.rivalAnswered ? session.rivalAnswer : null;
    const longest = session.order.slice(0, 2);
    const timer = setTimeout(() => {
      let words = `Capsule network: ${longest.map((j, n) => `${session.className(j)}, ${n ? '' : 'length '}${answer.lengths[j].toFixed(2)}`).join('; then ')}.`;
      if (picture.labels) words += ` True class: ${session.classNames(picture.labels)}.`;
      if (rivalAnswer) {
        const named = session.rivalNamed.map((j) => `${session.className(j)}, ${rivalAnswer[j].toFixed(2)}`);
        words += ` Plain network: ${named.join('; then ') || 'no class'}.`;
      }
      session.spoken = words;
    }, 600);
    return () => clearTimeout(timer);
  });
}
