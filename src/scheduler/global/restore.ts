// Taking up what an earlier server left on disk: live durable sessions, what they gave to triggers, what triggers hold.

import { PlatformError } from '../../base/index.ts';
import type { ObjectHeader, TriggerSpec } from '../../protocol/index.ts';
import { outcomeOf } from './archive.ts';
import type { BucketTriggersEffect } from './bucket-triggers.ts';
import type { Coordinator } from './coordinator.ts';
import type { RecordChange } from './record-store.ts';
import type { Session } from './session.ts';
import { ALL_PREFIXES, keys, monotonicOf, outputOf, outsideOf, sessionOf } from './session-codec.ts';

interface HeldHeader {
  readonly seq: number;
  readonly object: ObjectHeader;
  readonly version: string;
  readonly spec: TriggerSpec;
  readonly draining: boolean;
}

/** Order matters: triggers first, then what was taken, then what is held, and at last the sessions begin to run. */
export async function restoreCoordinator(coordinator: Coordinator): Promise<void> {
  const { records, apps } = coordinator.ports;
  await records.removeOrphans(ALL_PREFIXES);
  coordinator.persisted.restore();
  coordinator.letters.restore();
  for (const app of apps.names()) coordinator.configure(app);
  const sessions = await liveSessions(coordinator);
  const effects: BucketTriggersEffect[] = [];
  // What a damaged session gave stays taken: it may be mended.
  const producers = new Set([...sessions.map(({ session }) => session.id), ...coordinator.archive.damaged.keys()]);
  const changes = await restoreTriggers(coordinator, producers, effects);
  await coordinator.firings.fire(effects, changes);
  for (const { session, dueAtMs } of sessions) {
    if (dueAtMs === undefined) coordinator.accept(session);
    else coordinator.accept(session, monotonicOf(dueAtMs, coordinator.now()));
    if (!apps.hasVersion(session.spec.app, session.spec.version)) {
      const message = `Version '${session.spec.version}' of app '${session.spec.app}' is gone.`;
      coordinator.handle({ type: 'cancel', session: session.id, error: { code: 'E_CANCELLED', message } });
    }
  }
}

interface Restored {
  readonly session: Session;
  readonly dueAtMs: number | undefined;
}

async function liveSessions(coordinator: Coordinator): Promise<Restored[]> {
  const { records } = coordinator.ports;
  const live: Restored[] = [];
  const ids: string[] = [];
  for (const [key, { header }] of records.forwards<{ end?: unknown }>('s/')) {
    if (header.end === undefined) ids.push(key.slice(2));
  }
  for (const id of ids) {
    try {
      const restored = await liveSession(coordinator, id);
      if (restored !== undefined) live.push(restored);
    } catch (error) {
      if (!isDamage(error)) throw error;
      coordinator.archive.damaged.set(id, error);
      coordinator.ports.report(`session ${id} is not taken up: what was kept of it is damaged`, error);
    }
  }
  return live.sort((a, b) => a.session.startedAtMs - b.session.startedAtMs);
}

async function liveSession(coordinator: Coordinator, id: string): Promise<Restored | undefined> {
  const { records } = coordinator.ports;
  const record = await records.read(keys.session(id));
  if (record === undefined) return undefined;
  const restored = sessionOf(record);
  restored.session.marked = true;
  // Its time went on while no server ran; that of a delayed one begins with it.
  const beganAtMs = restored.dueAtMs ?? restored.session.startedAtMs;
  restored.session.spentMs = Math.max(0, coordinator.now().epochMs - beganAtMs);
  for (const key of records.keys(`o/${id}/`)) {
    const output = await records.read(key);
    if (output === undefined) continue;
    const { bucket, name, payload } = outputOf(output);
    restored.session.addOutput(bucket, name, payload);
  }
  if (restored.session.outputs.length > 0) restored.session.outcome = outcomeOf(restored.session);
  for (const key of records.keys(`e/${id}/`)) {
    const event = await records.read(key);
    if (event === undefined) continue;
    restored.session.outside ??= [];
    restored.session.outside.push(outsideOf(event));
    restored.session.outsideCount = Number(key.slice(key.lastIndexOf('/') + 1)) + 1;
  }
  return restored;
}

function isDamage(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.code === 'E_CHECKSUM';
}

async function restoreTriggers(
  coordinator: Coordinator,
  live: ReadonlySet<string>,
  effects: BucketTriggersEffect[],
): Promise<RecordChange[]> {
  const { records, apps } = coordinator.ports;
  const changes: RecordChange[] = [];
  for (const key of records.keys('k/')) {
    const [, app = '', session = '', bucket = '', ...name] = key.split('/');
    if (live.has(session)) coordinator.triggers.restoreTaken(app, session, bucket, name.join('/'));
    else changes.push({ delete: key });
  }
  for (const [key, { header }] of records.forwards('n/')) {
    const [, app = '', bucket = '', trigger = ''] = key.split('/');
    const current = apps.current(app);
    const spec = current?.manifest.buckets[bucket]?.on?.[trigger];
    if (current === undefined || spec === undefined || spec.kind !== (header as { kind?: unknown }).kind) {
      changes.push({ delete: key });
      continue;
    }
    const placement = { app, version: current.version, bucket, trigger, spec, draining: false };
    coordinator.triggers.restoreSnapshot(placement, header, coordinator.now());
  }
  const held: { key: string; seq: number }[] = [];
  for (const [key, { header }] of records.forwards<HeldHeader>('h/')) held.push({ key, seq: header.seq });
  held.sort((a, b) => a.seq - b.seq);
  for (const { key, seq } of held) {
    const [, app = '', bucket = '', trigger = ''] = key.split('/');
    let record: Awaited<ReturnType<typeof records.read<HeldHeader>>>;
    try {
      record = await records.read<HeldHeader>(key);
    } catch (error) {
      if (!isDamage(error)) throw error;
      coordinator.ports.report(`an object that trigger ${trigger} of bucket ${bucket} holds is damaged`, error);
      continue;
    }
    if (record === undefined) continue;
    const { object, version, spec, draining } = record.header;
    if (draining ? !apps.hasVersion(app, version) : apps.current(app) === undefined) {
      changes.push({ delete: key });
      continue;
    }
    const objectKey = `${object.session}\u0000${object.name}`;
    const one = {
      key: objectKey,
      seq,
      object: { header: object, bytes: record.blobs[0] ?? new Uint8Array(0) },
      durable: true,
    };
    const placement = { app, version, bucket, trigger, spec, draining };
    coordinator.triggers.restoreHeld(placement, one, coordinator.now(), effects);
  }
  coordinator.triggers.restored(coordinator.now(), effects);
  return changes;
}
