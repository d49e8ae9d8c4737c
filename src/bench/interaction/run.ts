import { assert } from '../../base/index.ts';
import type { BenchServer } from '../bench-server.ts';
import type { EchoPeerPorts } from '../echo-peer.ts';
import type { HttpLoad } from '../http-load.ts';
import type { RawMessages } from '../raw-messages.ts';
import { Samples } from '../samples.ts';

/** What the parts of the suite measure with. */
export interface InteractionRun {
  readonly server: BenchServer;
  readonly raw: RawMessages;
  readonly load: HttpLoad;
  readonly peer: EchoPeerPorts;
  readonly quick: boolean;
  readonly signal: AbortSignal;
}

/** Takes one turn's samples, by the name of what they are of. */
export type Measure = () => Promise<Readonly<Record<string, Iterable<number>>>>;

/**
 * Measures in turn, round by round, so that whatever else this machine does meets all alike. A first round warms up; what
 * it gives is thrown away.
 */
export async function inTurn(
  rounds: number,
  signal: AbortSignal,
  measures: readonly Measure[],
): Promise<(name: string) => Samples> {
  const byName = new Map<string, Samples>();
  for (let round = -1; round < rounds; round++) {
    for (const measure of measures) {
      signal.throwIfAborted();
      const taken = await measure();
      if (round < 0) continue;
      for (const [name, values] of Object.entries(taken)) {
        const samples = byName.get(name) ?? new Samples();
        byName.set(name, samples);
        samples.addAll(values);
      }
    }
  }
  return (name) => {
    const samples = byName.get(name);
    assert(samples !== undefined, 'samples are asked for by the name they were taken under');
    return samples;
  };
}

/** `10B`, `1KB`, `100MB`: decimal, as in names of metrics. */
export function sizeName(bytes: number): string {
  if (bytes >= 1_000_000) return `${bytes / 1_000_000}MB`;
  return bytes >= 1_000 ? `${bytes / 1_000}KB` : `${bytes}B`;
}
