/** Tensors in the safetensors format: an 8-byte header length, a JSON header, then the numbers. */

export type Numbers = Float32Array | Uint8Array | Int32Array;

export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Numbers;
}

export interface TensorFile {
  readonly tensors: Record<string, Tensor>;
  readonly metadata: Record<string, string>;
}

interface HeaderEntry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

export function tensorOf(data: Numbers, ...shape: number[]): Tensor {
  return { data, shape };
}

/** The numbers as float32, whatever they were stored as. */
export function floats(tensor: Tensor): Float32Array {
  return tensor.data instanceof Float32Array ? tensor.data : Float32Array.from(tensor.data);
}

export function readTensors(buffer: ArrayBuffer): TensorFile {
  if (buffer.byteLength < 8) throw new Error(`a tensor file has at least 8 bytes, got ${buffer.byteLength}`);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw new Error(`the header of ${length} bytes is longer than the file`);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as Record<string, unknown>;
  const tensors: Record<string, Tensor> = {};
  let metadata: Record<string, string> = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      metadata = entry as Record<string, string>;
      continue;
    }
    const { dtype, shape, data_offsets: [begin, end] } = entry as HeaderEntry;
    const bytes = buffer.slice(8 + length + begin, 8 + length + end);
    tensors[name] = { shape, data: decode(dtype, bytes, name) };
  }
  return { tensors, metadata };
}

export function writeTensors(tensors: Record<string, Tensor>): ArrayBuffer {
  const header: Record<string, HeaderEntry> = {};
  let offset = 0;
  for (const [name, { data, shape }] of Object.entries(tensors)) {
    const dtype = data instanceof Uint8Array ? 'U8' : data instanceof Int32Array ? 'I32' : 'F32';
    header[name] = { dtype, shape: [...shape], data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  let text = JSON.stringify(header);
  text += ' '.repeat((8 - (text.length % 8)) % 8); // data begins at a multiple of 8
  const bytes = new Uint8Array(8 + text.length + offset);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(new TextEncoder().encode(text), 8);
  let position = 8 + text.length;
  for (const { data } of Object.values(tensors)) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), position);
    position += data.byteLength;
  }
  return bytes.buffer;
}

function decode(dtype: string, bytes: ArrayBuffer, name: string): Numbers {
  switch (dtype) {
    case 'F32':
      return new Float32Array(bytes);
    case 'F64':
      return Float32Array.from(new Float64Array(bytes));
    case 'F16':
      return Float32Array.from(new Uint16Array(bytes), halfToFloat);
    case 'U8':
    case 'BOOL':
      return new Uint8Array(bytes);
    case 'I32':
      return new Int32Array(bytes);
    case 'I64':
      return Int32Array.from(new BigInt64Array(bytes), Number);
    default:
      throw new Error(`tensor ${name} has the type ${dtype}; this page reads F32, F64, F16, U8, BOOL, I32 and I64`);
  }
}

function halfToFloat(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
