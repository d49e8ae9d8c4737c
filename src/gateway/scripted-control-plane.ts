// A control plane in memory that answers by script: what the gateway's own tests stand on.

import { PlatformError } from '../base/index.ts';
import {
  type AppInfo,
  CONTENT_BYTES,
  CONTENT_JSON,
  type LogEntry,
  type Payload,
  type SessionRecord,
  sourceOf,
} from '../protocol/index.ts';
import type { ControlPlane, OutputEvent, StartedSession } from './control-plane.ts';

export interface Call {
  readonly method: string;
  readonly args: readonly unknown[];
}

export type ScriptedControlPlane = ControlPlane & { readonly calls: Call[] };

export const SESSION = 'e1-1-abc';

export function jsonPayload(value: unknown): Payload {
  return { contentType: CONTENT_JSON, bytes: Buffer.from(JSON.stringify(value)) };
}

const NULL = jsonPayload(null);

const APP: AppInfo = {
  app: 'shop',
  version: 'v1',
  deployedAt: '2026-01-01T00:00:00.000Z',
  manifest: { entry: 'f', functions: { f: { kind: 'fn' } }, buckets: {} },
  versions: [{ version: 'v1', deployedAt: '2026-01-01T00:00:00.000Z', current: true, usedBy: 0 }],
};

const RECORD: SessionRecord = {
  session: SESSION,
  app: 'shop',
  version: 'v1',
  function: 'f',
  state: 'running',
  tags: {},
  causes: [],
  unfired: [],
  startedAt: '2026-01-01T00:00:00.000Z',
  counts: { invocations: 1, attempts: 1, objects: 0, bytes: 0, firings: 0 },
  meteredMs: 1,
};

/** @param script replaces what the defaults do; each call is noted in `calls`. */
export function scriptedControlPlane(script: Partial<ControlPlane> = {}): ScriptedControlPlane {
  const calls: Call[] = [];
  const plane: Record<string, unknown> = { ...DEFAULTS, ...script };
  for (const [method, answer] of Object.entries(plane)) {
    // Asked before anything else, and changes nothing.
    if (typeof answer !== 'function' || method === 'refusal') continue;
    plane[method] = (...args: unknown[]) => {
      calls.push({ method, args });
      return answer.apply(plane, args);
    };
  }
  return Object.assign(plane as unknown as ControlPlane, { calls });
}

const DEFAULTS: ControlPlane = {
  bodyBytesMax: 1024 * 1024,
  deploy: async (app) => ({ app, version: 'v1', created: true }),
  listApps: async () => ({ apps: [APP] }),
  getApp: async (app) => {
    if (app === APP.app) return APP;
    throw new PlatformError('E_APP_UNKNOWN', `There is no app ${app}.`, { details: { didYouMean: APP.app } });
  },
  deleteApp: async () => {},
  putTrigger: async () => ({ created: true }),
  deleteTrigger: async () => {},
  refusal: () => undefined,
  /** Echoes the first input. */
  startSession: async ({ entries }): Promise<StartedSession> => ({
    session: SESSION,
    outcome: Promise.resolve({ ok: true, payload: entries[0]?.input ?? NULL }),
  }),
  putObject: async ({ session }) => ({ session: session ?? SESSION, duplicate: false }),
  closeGroup: async () => {},
  join: async () => {},
  /** Every object is the ten digits. */
  openObject: async () => sourceOf({ contentType: 'text/plain', bytes: Buffer.from('0123456789') }, 'v1'),
  deleteObject: async () => {},
  listObjects: async () => ({ objects: [] }),
  getSession: async (session) => {
    if (session === SESSION) return RECORD;
    throw new PlatformError('E_SESSION_UNKNOWN', `There is no session ${session}.`);
  },
  sessionResult: async () => ({ ok: true, payload: jsonPayload({ done: true }) }),
  trace: async (session) => ({ session, invocations: [] }),
  async *outputs(_session, after): AsyncGenerator<OutputEvent> {
    const payloads = [jsonPayload({ n: 1 }), { contentType: CONTENT_BYTES, bytes: Buffer.from([0, 255]) }, NULL];
    for (const [i, payload] of payloads.entries()) {
      if (i >= after) yield { n: i + 1, bucket: 'out', name: `o${i + 1}`, payload };
    }
  },
  listSessions: async () => ({ sessions: [RECORD], cursor: 'next' }),
  cancelSession: async () => {},
  retrySession: async () => ({ session: 'e1-2-abc' }),
  forkSession: async () => ({ session: 'e1-3-abc' }),
  objects: async () => ({ apps: [] }),
  instances: async () => ({ instances: [] }),
  nodes: async () => ({ nodes: [] }),
  deadLetters: async () => ({ deadLetters: [], dropped: 0 }),
  deadLetter: async (id) => {
    throw new PlatformError('E_DEAD_LETTER_UNKNOWN', `There is no dead letter '${id}'.`);
  },
  retryDeadLetter: async () => ({ session: 'e1-4-abc' }),
  dropDeadLetter: async () => {},
  limits: async () => ({ limits: [{ name: 'bodyBytesMax', value: 1024, unit: 'bytes', why: 'a test' }] }),
  async *logs(): AsyncGenerator<LogEntry> {
    for (const message of ['one', 'two']) {
      yield { at: '2026-01-01T00:00:00.000Z', app: 'shop', version: 'v1', level: 'info', message };
    }
  },
  metrics: async () => '# TYPE up gauge\nup 1\n',
  notReady: () => undefined,
};
