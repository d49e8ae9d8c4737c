// Runs one sort on a server and checks its result: by the records themselves, not by what the app says about them.

import { connect, type SessionTrace } from 'antrail/client';
import type { SortJob, SortSummary } from './app.ts';
import { SortCheck } from './check.ts';
import { type Checksum, RECORD_BYTES } from './records.ts';

export interface SortReport {
  readonly job: SortJob;
  readonly bytes: number;
  /** One line per check that failed. */
  readonly wrong: readonly string[];
  readonly found: Checksum;
  /** Records less different keys. */
  readonly equalKeys: number;
  readonly shuffleBytes: number;
  /** From the put of the job to the summary. */
  readonly sortMs: number;
  /** From the end of the last mapper to the start of the first and of the last reducer. */
  readonly firstReducerMs: number;
  readonly lastReducerMs: number;
  /** For reading what was sorted and comparing it with the input. */
  readonly checkMs: number;
}

/** @param name of the app: a variant of the example. */
export async function driveSort(options: {
  readonly url: string;
  readonly job: SortJob;
  readonly name?: string;
  /** Sorted, and not yet read or freed. */
  readonly onSorted?: (session: string) => Promise<void> | void;
}): Promise<SortReport> {
  const { url, job } = options;
  const client = connect<typeof import('./app.ts').default>({ app: (options.name ?? 'sort') as 'sort', url });
  const startedMs = performance.now();
  // The name is the job's idempotency key: a job of its own each time.
  const { session } = await client.put('jobs', `job-${crypto.randomUUID()}`, job, { open: true });
  const handle = client.handle<SortSummary>(session);
  try {
    const summary = await handle.result();
    const sortMs = performance.now() - startedMs;
    await options.onSorted?.(session);
    const checkedMs = performance.now();
    const check = new SortCheck();
    for (const { name } of summary.ranges) {
      const { stream } = await client.getStream('sorted', name, { session });
      check.beginRange(name);
      for await (const bytes of stream) check.add(bytes);
      check.endRange();
    }
    const wrong = check.compareWith(job);
    const found = check.checksum.get();
    if (summary.checksum.sum !== found.sum) wrong.push(`the app thinks that it wrote ${summary.checksum.sum}`);
    if (summary.ranges.length !== job.partitions) wrong.push(`${summary.ranges.length} ranges of ${job.partitions}`);
    return {
      job,
      bytes: job.records * RECORD_BYTES,
      wrong,
      found,
      equalKeys: check.equalKeys,
      shuffleBytes: summary.shuffleBytes,
      sortMs,
      ...interactionOf(await handle.trace()),
      checkMs: performance.now() - checkedMs,
    };
  } finally {
    // The session may end: what was sorted is freed.
    await handle.close('jobs');
  }
}

function interactionOf({ invocations }: SessionTrace): { firstReducerMs: number; lastReducerMs: number } {
  const times = (name: string, which: 'startedAt' | 'endedAt') =>
    invocations
      .filter((one) => one.function === name)
      .map(({ attempts }) => Date.parse(attempts.at(-1)?.[which] ?? ''));
  const mapped = Math.max(...times('map', 'endedAt'));
  const reducers = times('reduce', 'startedAt');
  return { firstReducerMs: Math.min(...reducers) - mapped, lastReducerMs: Math.max(...reducers) - mapped };
}
