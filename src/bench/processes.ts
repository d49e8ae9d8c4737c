// What the processes of a server take of the machine: Linux only, since only there can one look from outside.

import { readdirSync, readFileSync } from 'node:fs';
import { PlatformError } from '../base/index.ts';
import { nowUs } from './now.ts';

const SAMPLE_MS = 100;
const NS_PER_MS = 1_000_000;
const KIB = 1_024;

export interface ServerProcesses {
  readonly server: number;
  readonly hosts: readonly number[];
}

/** Process ids of the server behind a URL and of its app hosts. */
export async function processesOf(url: string): Promise<ServerProcesses> {
  const answer = (await (await fetch(`${url}/v1/nodes`)).json()) as {
    readonly nodes: readonly { readonly pid: number; readonly hosts: readonly { readonly pid: number | null }[] }[];
  };
  const [node] = answer.nodes;
  if (node === undefined) throw new PlatformError('E_INTERNAL', 'the server has no node');
  return { server: node.pid, hosts: node.hosts.flatMap(({ pid }) => (pid === null ? [] : [pid])) };
}

/** Processor time of all threads of a process that live, ms. */
export function cpuMs(pid: number): number {
  let sum = 0;
  for (const thread of list(`/proc/${pid}/task`)) {
    sum += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ', 1)[0]) / NS_PER_MS;
  }
  return sum;
}

/** Resident memory, bytes. */
export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1] ?? Number.NaN) * KIB;
}

/** Looks at resident memory until it is told to stop. */
export class MemoryWatch {
  readonly #pids: readonly number[];
  readonly #timer: NodeJS.Timeout;
  /** By process, in order. */
  #samples: number[][];

  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#samples = pids.map(() => []);
    this.#timer = setInterval(() => this.#look(), SAMPLE_MS);
    this.#look();
  }

  /** Samples since the last call, by process. */
  take(): number[][] {
    this.#look();
    const samples = this.#samples;
    this.#samples = this.#pids.map(() => []);
    return samples;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const [index, pid] of this.#pids.entries()) this.#samples[index]?.push(residentBytes(pid));
  }
}

/** Share of one core, in percent, that processes take from one call to the next. */
export function cpuMeter(pids: readonly number[]): () => number {
  let atUs = nowUs();
  let beforeMs = pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  return () => {
    const nowMs = pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
    const endUs = nowUs();
    const percent = ((nowMs - beforeMs) * 1_000 * 100) / (endUs - atUs);
    atUs = endUs;
    beforeMs = nowMs;
    return percent;
  };
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    throw new PlatformError('E_INTERNAL', `this suite reads ${folder}, which is not there: it needs Linux`);
  }
}

/** Empty for a thread that has ended meanwhile. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
