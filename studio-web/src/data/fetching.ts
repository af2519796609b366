import { readTensors, writeTensors, type Tensor, type TensorFile } from '../maths/tensors';

const TENSORS = 'application/x-torchcaps-tensors';

/** An answer that says no, in the server's words. */
export class RequestError extends Error {}

/** Nobody answers at all. */
export class NoAnswer extends RequestError {}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text();
  let words = text;
  try {
    words = (JSON.parse(text) as { error?: string }).error ?? text;
  } catch {
    words = `${response.status} ${response.statusText}`;
  }
  throw new RequestError(words);
}

async function ask(path: string, options?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new NoAnswer('no answer from the server; is torchcaps studio still running?');
  }
  return checked(response);
}

export async function getJson<T>(path: string): Promise<T> {
  return (await ask(path)).json() as Promise<T>;
}

export async function getText(path: string): Promise<string> {
  return (await ask(path)).text();
}

export async function getTensors(path: string): Promise<TensorFile> {
  return readTensors(await (await ask(path)).arrayBuffer());
}

export async function postTensors(path: string, tensors: Record<string, Tensor>): Promise<TensorFile> {
  const options = { method: 'POST', headers: { 'Content-Type': TENSORS }, body: writeTensors(tensors) };
  return readTensors(await (await ask(path, options)).arrayBuffer());
}

export async function postForText(path: string, tensors: Record<string, Tensor>): Promise<string> {
  return (await ask(path, { method: 'POST', headers: { 'Content-Type': TENSORS }, body: writeTensors(tensors) })).text();
}

export async function postBytes(path: string, bytes: Blob): Promise<TensorFile> {
  const options = { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: bytes };
  return readTensors(await (await ask(path, options)).arrayBuffer());
}
