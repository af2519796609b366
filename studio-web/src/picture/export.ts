/** The screen as a PNG: its canvases, graphs and words, painted once more. */

const SCALE = 2;
const MARGIN = 16;
const SIDES = ['top', 'right', 'bottom', 'left'] as const;

export function downloadScreen(): void {
  const screen = document.querySelector<HTMLElement>('#screen');
  if (!screen) return;
  paintScreen(screen).toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `torchcaps-${new URLSearchParams(location.hash.slice(1)).get('screen') ?? 'look'}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function paintScreen(screen: HTMLElement): HTMLCanvasElement {
  const scrolled = screen.scrollTop;
  screen.scrollTop = 0;
  const box = screen.getBoundingClientRect();
  const content = [...screen.children].reduce((bottom, child) => Math.max(bottom, child.getBoundingClientRect().bottom), box.top);
  const canvas = document.createElement('canvas');
  canvas.width = SCALE * box.width;
  canvas.height = SCALE * (content - box.top + MARGIN);
  const context = canvas.getContext('2d')!;
  context.scale(SCALE, SCALE);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, box.width, canvas.height);
  context.translate(-box.left, -box.top);
  paintNode(context, screen);
  screen.scrollTop = scrolled;
  return canvas;
}

function paintNode(context: CanvasRenderingContext2D, node: Node): void {
  if (node instanceof Text) return paintText(context, node);
  if (!(node instanceof Element) || node.matches('.hidden-text, [hidden], dialog, option, details:not([open]), button[role="gridcell"]:not(.set)')) return;
  const style = getComputedStyle(node);
  if (style.display === 'none' || style.visibility === 'hidden') return;
  if (node instanceof SVGSVGElement) return paintGraph(context, node);
  const box = node.getBoundingClientRect();
  if (node instanceof HTMLCanvasElement) {
    context.imageSmoothingEnabled = false;
    context.drawImage(node, box.left, box.top, box.width, box.height);
    return;
  }
  if (!node.matches('input[type="range"], progress')) paintBox(context, box, style);
  if (node instanceof HTMLInputElement) return paintInput(context, node, box, style);
  if (node instanceof HTMLProgressElement) return paintProgress(context, node, box, style);
  if (node instanceof HTMLSelectElement) return paintWords(context, node.selectedOptions[0]?.text ?? '', box.left + 12, box, style);
  if (node.localName === 'mfrac') paintFraction(context, node, style);
  for (const child of node.childNodes) paintNode(context, child);
}

/** The bar, halfway between what stands above and below. */
function paintFraction(context: CanvasRenderingContext2D, fraction: Element, style: CSSStyleDeclaration): void {
  const box = fraction.getBoundingClientRect();
  const [above, below] = [...fraction.children].map((part) => part.getBoundingClientRect());
  const thickness = parseFloat(style.fontSize) / 16;
  context.fillStyle = style.color;
  context.fillRect(box.left + 1, (above.bottom + below.top - thickness) / 2, box.width - 2, thickness);
}

function paintBox(context: CanvasRenderingContext2D, box: DOMRect, style: CSSStyleDeclaration): void {
  context.beginPath();
  context.roundRect(box.left, box.top, box.width, box.height, parseFloat(style.borderRadius) || 0);
  context.fillStyle = style.backgroundColor;
  context.fill();
  const borders = SIDES.map((side) => borderOf(style, side));
  const [top] = borders;
  const same = borders.every(({ width, kind, colour }) => width === top.width && kind === top.kind && colour === top.colour);
  if (same) return strokeAs(context, top);
  const { left, right, top: upper, bottom: lower } = box;
  const corners = [[left, upper], [right, upper], [right, lower], [left, lower]];
  const inwards = [[0, 1], [-1, 0], [0, -1], [1, 0]];
  borders.forEach((border, n) => {
    const [x, y] = inwards[n].map((step) => (step * border.width) / 2);
    const [from, to] = [corners[n], corners[(n + 1) % 4]];
    context.beginPath();
    context.moveTo(from[0] + x, from[1] + y);
    context.lineTo(to[0] + x, to[1] + y);
    strokeAs(context, border);
  });
}

interface Border {
  readonly width: number;
  readonly kind: string;
  readonly colour: string;
}

function borderOf(style: CSSStyleDeclaration, side: (typeof SIDES)[number]): Border {
  const kind = style.getPropertyValue(`border-${side}-style`);
  const width = kind === 'none' ? 0 : parseFloat(style.getPropertyValue(`border-${side}-width`));
  return { width, kind, colour: style.getPropertyValue(`border-${side}-color`) };
}

/** The path as a border is drawn: dots as long as the border is wide, dashes twice as long. */
function strokeAs(context: CanvasRenderingContext2D, border: Border): void {
  if (border.width === 0) return;
  const dash = { dotted: 1, dashed: 2 }[border.kind];
  context.strokeStyle = border.colour;
  context.lineWidth = border.width;
  context.setLineDash(dash ? [dash * border.width, border.width] : []);
  context.stroke();
  context.setLineDash([]);
}

function paintInput(context: CanvasRenderingContext2D, input: HTMLInputElement, box: DOMRect, style: CSSStyleDeclaration): void {
  const middle = box.top + box.height / 2;
  if (input.type === 'range') {
    const part = (input.valueAsNumber - Number(input.min)) / (Number(input.max) - Number(input.min) || 1);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--strong-line');
    context.fillRect(box.left, middle - 1.5, box.width, 3);
    context.fillStyle = style.accentColor;
    context.beginPath();
    context.arc(box.left + 8 + part * (box.width - 16), middle, 7, 0, 2 * Math.PI);
    context.fill();
  } else if (input.type === 'checkbox') {
    context.strokeStyle = style.color;
    context.strokeRect(box.left + 1, box.top + 1, box.width - 2, box.height - 2);
    if (input.checked) context.fillRect(box.left + 4, box.top + 4, box.width - 8, box.height - 8);
  } else if (input.type === 'text' || input.type === 'number') {
    paintWords(context, input.value || input.placeholder, box.left + 4, box, style);
  }
}

function paintProgress(context: CanvasRenderingContext2D, bar: HTMLProgressElement, box: DOMRect, style: CSSStyleDeclaration): void {
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--line');
  context.fillRect(box.left, box.top, box.width, box.height);
  context.fillStyle = style.accentColor;
  context.fillRect(box.left, box.top, box.width * bar.position, box.height);
}

function paintWords(context: CanvasRenderingContext2D, words: string, x: number, box: DOMRect, style: CSSStyleDeclaration): void {
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.fillText(words, x, box.top + box.height / 2);
}

/** One line at a time: words are measured by the range they cover. */
function paintText(context: CanvasRenderingContext2D, text: Text): void {
  if (!text.data.trim() || !text.parentElement) return;
  const style = getComputedStyle(text.parentElement);
  const range = document.createRange();
  let line = { words: '', box: null as DOMRect | null };
  const flush = (): void => {
    if (line.box) paintWords(context, line.words.trimEnd(), line.box.left, line.box, style);
  };
  for (const match of text.data.matchAll(/\S+\s*/g)) {
    range.setStart(text, match.index);
    range.setEnd(text, match.index + match[0].trimEnd().length);
    const box = range.getBoundingClientRect();
    const words = match[0].replace(/\s+/g, ' ');
    if (line.box && Math.abs(line.box.top - box.top) < 2) line.words += words;
    else {
      flush();
      line = { words, box };
    }
  }
  flush();
}

function paintGraph(context: CanvasRenderingContext2D, graph: SVGSVGElement): void {
  for (const shape of graph.querySelectorAll<SVGGraphicsElement>('line, rect, circle, path, polyline, text')) {
    const matrix = shape.getScreenCTM();
    if (!matrix || shape.closest('defs')) continue;
    const style = getComputedStyle(shape);
    context.save();
    context.transform(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f);
    context.globalAlpha = Number(style.opacity);
    if (shape instanceof SVGTextElement) paintLabel(context, shape, style);
    else paintShape(context, shape, style);
    context.restore();
  }
}

function paintLabel(context: CanvasRenderingContext2D, label: SVGTextElement, style: CSSStyleDeclaration): void {
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.fill;
  context.textBaseline = 'alphabetic';
  context.textAlign = style.textAnchor === 'middle' ? 'center' : style.textAnchor === 'end' ? 'right' : 'left';
  context.fillText(label.textContent ?? '', label.x.baseVal[0]?.value ?? 0, label.y.baseVal[0]?.value ?? 0);
}

function paintShape(context: CanvasRenderingContext2D, shape: SVGGraphicsElement, style: CSSStyleDeclaration): void {
  const path = new Path2D(outline(shape));
  if (style.fill !== 'none') {
    context.globalAlpha = Number(style.opacity) * Number(style.fillOpacity);
    context.fillStyle = style.fill;
    context.fill(path);
  }
  if (style.stroke === 'none') return;
  context.globalAlpha = Number(style.opacity) * Number(style.strokeOpacity);
  context.strokeStyle = style.stroke;
  context.lineWidth = parseFloat(style.strokeWidth);
  if (style.strokeDasharray !== 'none') context.setLineDash(style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
  context.stroke(path);
}

function outline(shape: SVGGraphicsElement): string {
  const at = (name: string): number => Number(shape.getAttribute(name) ?? 0);
  if (shape instanceof SVGLineElement) return `M${at('x1')} ${at('y1')}L${at('x2')} ${at('y2')}`;
  if (shape instanceof SVGRectElement) return `M${at('x')} ${at('y')}h${at('width')}v${at('height')}h${-at('width')}z`;
  if (shape instanceof SVGCircleElement) {
    const r = at('r');
    return `M${at('cx') - r} ${at('cy')}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  }
  if (shape instanceof SVGPolylineElement) return `M${shape.getAttribute('points')}`;
  return shape.getAttribute('d') ?? '';
}
