/** Bytes as text for an address: base64url, with runs of zeros shortened, since most of a digit is black. */

export function packBytes(bytes: Uint8Array): string {
  const short: number[] = [];
  for (let n = 0; n < bytes.length; n++) {
    short.push(bytes[n]);
    if (bytes[n] !== 0) continue;
    let run = 1;
    while (run < 255 && bytes[n + run] === 0) run++;
    short.push(run);
    n += run - 1;
  }
  return toBase64(Uint8Array.from(short));
}

export function unpackBytes(text: string): Uint8Array {
  const short = fromBase64(text);
  const bytes: number[] = [];
  for (let n = 0; n < short.length; n++) {
    if (short[n] !== 0) bytes.push(short[n]);
    else for (let run = short[++n] ?? 0; run > 0; run--) bytes.push(0);
  }
  return Uint8Array.from(bytes);
}

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array(0); // an address that was cut short
  }
}
