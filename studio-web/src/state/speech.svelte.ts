import { session } from './session.svelte';

/** Say in words what the networks answered, once things have settled. */
export function speakAnswers(): void {
  $effect(() => {
    const { answer, rivalAnswer, model } = session;
    if (!answer || !model || session.blank) return;
    const [first, second] = session.order;
    const timer = setTimeout(() => {
      let words = `Capsule network: ${session.className(first)}, length ${answer.lengths[first].toFixed(2)}`;
      words += `; then ${session.className(second)}, ${answer.lengths[second].toFixed(2)}.`;
      const labels = session.picture?.labels ?? [];
      if (labels.length) words += ` True class: ${labels.map((label) => session.className(label)).join(' and ')}.`;
      if (rivalAnswer) {
        const best = rivalAnswer.indexOf(Math.max(...rivalAnswer));
        words += ` Plain network: ${session.className(best)}, ${rivalAnswer[best].toFixed(2)}.`;
      }
      session.spoken = words;
    }, 600);
    return () => clearTimeout(timer);
  });
}
