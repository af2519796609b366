/** The Python of what is on the screen, for an exported page; the live studio asks its server. */

import type { Picture } from '../picture/picture';
import { toBase64 } from '../state/pack';
import type { Model } from './types';

/** Test pictures that come with the library. */
const EMBEDDED = ['mnist-sample', 'fashion-sample'];

/** A program that loads the weights, takes the picture and prints what is shown. */
export function pythonSnippet(model: Model, id: string, query: URLSearchParams, picture: Picture): string {
  const imports = new Set(['import torch']);
  const lines: string[] = [];
  if (model.source === 'shipped') {
    imports.add('import torchcaps');
    lines.push(`model = torchcaps.from_pretrained("${id}").eval()`);
  } else {
    imports.add('from torchcaps.eval import load_model');
    lines.push(`model = load_model("${id}")  # the folder that this page was exported from`);
  }
  if (picture.example !== null && EMBEDDED.includes(model.examples ?? '')) {
    imports.add('from torchcaps.data import load');
    lines.push(`pixels = load("${model.examples}").test.images[[${picture.example}]]`);
  } else {
    imports.add('import base64');
    lines.push(`data = base64.urlsafe_b64decode("${toBase64(picture.pixels)}==")`);
    lines.push(`pixels = torch.tensor(list(data), dtype=torch.uint8).reshape(1, ${picture.shape.join(', ')})`);
  }
  const kind = query.get('kind');
  if (kind === 'affine') {
    imports.add('from torchcaps.studio.affine import transform');
    lines.push(`pixels = transform(pixels[0], "${query.get('transform')}", torch.tensor([${query.get('value')}]))`);
  }
  if (kind === 'routing' && model.in_page) imports.add('from torchcaps import ops');
  lines.push('image = pixels.float() / 255');
  if (model.standardized) {
    imports.add('from torchcaps.data.augment.photometric import Standardize');
    lines.push('image = Standardize().evaluate(image)');
  }
  lines.push('with torch.no_grad():');
  lines.push(...body(model, query));
  return `${[...imports].sort(byKind).join('\n')}\n\n${lines.join('\n')}\n`;
}

function byKind(a: string, b: string): number {
  return Number(a.startsWith('from')) - Number(b.startsWith('from')) || a.localeCompare(b);
}

function body(model: Model, query: URLSearchParams): string[] {
  switch (query.get('kind')) {
    case 'dimensions': {
      const j = query.get('capsule');
      return [
        '    capsules = model(image).capsules',
        `    capsules[0, ${j}] = torch.tensor([${query.get('vector')?.replaceAll(',', ', ')}])  # the sliders`,
        `    picture = model.reconstruct(capsules, torch.tensor([${j}]))  # [1, C, H, W]`,
        `print(capsules[0, ${j}].norm())`,
      ];
    }
    case 'routing':
      if (!model.in_page) {
        return [
          '    out = model(image, return_trace=True)',
          'print(out.lengths)',
          'print(out.trace.coefficients[-1, 0])  # [I, J]',
          'print(out.trace.entropy()[:, 0])  # one for each iteration',
        ];
      }
      return [
        '    votes = model.classes.votes(model.lower_capsules(image))  # [1, I, J, D]',
        '    capsules, trace = ops.dynamic_routing(',
        `        votes, ${query.get('iterations')}, model.classes.bias, leaky=${model.leaky ? 'True' : 'False'}, return_trace=True`,
        '    )',
        'print(ops.capsule_lengths(capsules))',
        'print(trace.coefficients[-1, 0])  # [I, J]',
        'print(trace.entropy()[:, 0])  # one for each iteration',
      ];
    case 'overlap':
      return [
        '    out = model(image)',
        '    both = out.lengths[0].topk(2).indices',
        '    pictures = [model.reconstruct(out.capsules, j.reshape(1))[0] for j in both]  # each [C, H, W]',
        'print(both)',
        'print(out.lengths)',
      ];
    default:
      return [
        '    out = model(image)',
        ...(model.decoder ? ['    picture = model.reconstruct(out.capsules, out.lengths.argmax(1))  # [1, C, H, W]'] : []),
        'print(out.lengths)',
      ];
  }
}
