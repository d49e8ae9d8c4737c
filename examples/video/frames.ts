// Raw grey video: a head of three 32-bit numbers, little-endian (width, height, frames), then one byte per pixel.

import { randomOf } from '../random.ts';

export const HEAD_BYTES = 12;

export interface Shape {
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  readonly frameBytes: number;
}

/** @throws TypeError when it is shorter than its head says. A head alone is enough to know the shape. */
export function shapeOf(video: Uint8Array): Shape {
  if (video.length < HEAD_BYTES) throw new TypeError(`a video has a head of ${HEAD_BYTES} bytes, not ${video.length}`);
  const view = new DataView(video.buffer, video.byteOffset, HEAD_BYTES);
  const [width, height, frames] = [view.getUint32(0, true), view.getUint32(4, true), view.getUint32(8, true)];
  const frameBytes = width * height;
  if (video.length !== HEAD_BYTES && video.length !== HEAD_BYTES + frames * frameBytes) {
    throw new TypeError(
      `${frames} frames of ${width} × ${height} have ${frames * frameBytes} bytes, not ${video.length - HEAD_BYTES}`,
    );
  }
  return { width, height, frames, frameBytes };
}

export function headOf(width: number, height: number, frames: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  const view = new DataView(head.buffer);
  for (const [i, value] of [width, height, frames].entries()) view.setUint32(4 * i, value, true);
  return head;
}

/** How much brightness changes at each pixel, to the right and downwards (Sobel); nothing at the rim. */
export function edges(from: Uint8Array, to: Uint8Array, width: number, height: number): void {
  to.fill(0);
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      const at = y * width + x;
      const [a, b, c] = [from[at - width - 1] ?? 0, from[at - width] ?? 0, from[at - width + 1] ?? 0];
      const [d, f] = [from[at - 1] ?? 0, from[at + 1] ?? 0];
      const [g, h, i] = [from[at + width - 1] ?? 0, from[at + width] ?? 0, from[at + width + 1] ?? 0];
      const across = c + 2 * f + i - (a + 2 * d + g);
      const down = g + 2 * h + i - (a + 2 * b + c);
      to[at] = Math.min(255, Math.abs(across) + Math.abs(down));
    }
  }
}

/** A bright square that moves over noise. */
export function syntheticVideo(width: number, height: number, frames: number, seed: number): Uint8Array {
  const video = new Uint8Array(HEAD_BYTES + width * height * frames);
  video.set(headOf(width, height, frames));
  const random = randomOf(seed);
  let at = HEAD_BYTES;
  for (let frame = 0; frame < frames; frame++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const inside = Math.abs(x - ((frame * 3) % width)) < width / 8 && Math.abs(y - height / 2) < height / 8;
        video[at++] = (inside ? 190 : 40) + (random() & 31);
      }
    }
  }
  return video;
}
