// A synthetic model: what it answers is arithmetic, what it costs is one look at every pixel.

import { randomOf } from '../random.ts';
import type { Image } from '../resize/image.ts';

export const COPIES = 4;
/** Pixels; a tensor is SIDE × SIDE × 3 floats, 602 KB. */
export const SIDE = 224;
export const LABELS: readonly string[] = ['ant', 'bee', 'beetle', 'moth', 'spider'];

/** Weights of one label and channel, the same wherever this module is loaded. Copies differ by a little noise. */
const WEIGHTS = weights();

/** Nearest pixels, 0 to 1. */
export function tensorOf({ width, height, pixels }: Image, tensor: Float32Array): void {
  let at = 0;
  for (let y = 0; y < SIDE; y++) {
    const row = Math.floor((y * height) / SIDE) * width;
    for (let x = 0; x < SIDE; x++) {
      const from = (row + Math.floor((x * width) / SIDE)) * 3;
      for (let channel = 0; channel < 3; channel++) tensor[at++] = (pixels[from + channel] ?? 0) / 255;
    }
  }
}

/** One score per label. */
export function classify(tensor: Float32Array, copy: number): number[] {
  const sums = [0, 0, 0];
  for (let i = 0; i < tensor.length; i++) sums[i % 3] = (sums[i % 3] as number) + (tensor[i] as number);
  return WEIGHTS.map((channels, label) => {
    const sum = channels.reduce((total, weight, channel) => total + weight * (sums[channel] ?? 0), 0);
    return sum / (SIDE * SIDE) + (copy + 1) / (1_000 * (label + 2));
  });
}

/** The copy that is slow today: which one follows from the image. */
export function stragglerOf(tensor: Float32Array): number {
  return Math.round((tensor[0] ?? 0) * 255) % COPIES;
}

function weights(): number[][] {
  const random = randomOf(3);
  return LABELS.map(() => [0, 1, 2].map(() => (random() % 2_001) / 1_000 - 1));
}
