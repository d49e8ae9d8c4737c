// Binary PPM images (P6): a line of text, then three bytes per pixel. Viewers open them as they are.

import { randomOf } from '../random.ts';

export interface Image {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue of each pixel, row by row: a view of the file's bytes. */
  readonly pixels: Uint8Array;
}

/** @throws TypeError when it is no binary PPM of one byte per channel without comments, or is cut off. */
export function parsePpm(file: Uint8Array): Image {
  let head = '';
  for (let at = 0; at < Math.min(file.length, 40); at++) {
    head += String.fromCharCode(file[at] as number);
    const match = /^P6\s+(\d+)\s+(\d+)\s+255\s$/.exec(head);
    if (match === null) continue;
    const [width, height] = [Number(match[1]), Number(match[2])];
    const pixels = file.subarray(at + 1);
    if (pixels.length !== width * height * 3) {
      throw new TypeError(
        `${width} × ${height} pixels have ${width * height * 3} bytes, the file has ${pixels.length}`,
      );
    }
    return { width, height, pixels };
  }
  throw new TypeError('give a binary PPM file (P6, 255 levels, no comments)');
}

export function ppmSize(width: number, height: number): number {
  return headOf(width, height).length + width * height * 3;
}

/** Writes the head into a file of `ppmSize` bytes; the pixels are for the caller to fill. */
export function beginPpm(file: Uint8Array, width: number, height: number): Uint8Array {
  const head = headOf(width, height);
  for (let i = 0; i < head.length; i++) file[i] = head.charCodeAt(i);
  return file.subarray(head.length);
}

/** Smallest and largest value of any channel. */
export function rangeOf(pixels: Uint8Array): { low: number; high: number } {
  let low = 255;
  let high = 0;
  for (const value of pixels) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low, high };
}

/** Stretches `low`…`high` to 0…255. */
export function stretch(from: Uint8Array, to: Uint8Array, { low, high }: { low: number; high: number }): void {
  const table = Uint8Array.from({ length: 256 }, (_, value) => {
    const stretched = high <= low ? value : Math.round(((value - low) * 255) / (high - low));
    return Math.min(255, Math.max(0, stretched));
  });
  for (let i = 0; i < from.length; i++) to[i] = table[from[i] as number] as number;
}

/** Means of squares of `factor` × `factor` pixels; what is left over at the right and below is cut off. */
export function shrink(from: Image, to: Uint8Array, factor: number): void {
  const width = Math.floor(from.width / factor);
  const height = Math.floor(from.height / factor);
  const area = factor * factor;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let channel = 0; channel < 3; channel++) {
        let sum = 0;
        for (let row = y * factor; row < (y + 1) * factor; row++) {
          const begin = (row * from.width + x * factor) * 3 + channel;
          for (let at = begin; at < begin + factor * 3; at += 3) sum += from.pixels[at] as number;
        }
        to[(y * width + x) * 3 + channel] = Math.round(sum / area);
      }
    }
  }
}

/** FNV-1a. */
export function checksumOf(bytes: Uint8Array): string {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** A slope of colours with noise on it, between 40 and 215 so that stretching it shows. */
export function syntheticPpm(width: number, height: number, seed: number): Uint8Array {
  const file = new Uint8Array(ppmSize(width, height));
  const pixels = beginPpm(file, width, height);
  const random = randomOf(seed);
  let at = 0;
  for (let y = 0; y < height; y++) {
    const down = (y * 120) / height;
    for (let x = 0; x < width; x++) {
      const across = (x * 120) / width;
      const noise = random();
      pixels[at++] = 40 + across + (noise & 31);
      pixels[at++] = 40 + down + ((noise >>> 8) & 31);
      pixels[at++] = 64 + (across + down) / 2 + ((noise >>> 16) & 31);
    }
  }
  return file;
}

function headOf(width: number, height: number): string {
  return `P6\n${width} ${height}\n255\n`;
}
