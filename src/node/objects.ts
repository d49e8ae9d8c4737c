// What the objects of each app take, and whose they are.

import type { AppObjects, AppObjectsDetail, WaitingTrigger } from '../protocol/index.ts';
import type { Coordinator } from '../scheduler/index.ts';
import { type AskedParts, askHosts, statsOf } from './host-answers.ts';

export interface ObjectsQuery {
  readonly app?: string;
  /** Only rows of this session; needs `detail` or `waits`. */
  readonly session?: string;
  readonly detail?: boolean;
  readonly waits?: boolean;
}

export interface ObjectsAnswer {
  readonly apps: readonly (AppObjects & Partial<AppObjectsDetail>)[];
  readonly waits?: readonly WaitingTrigger[];
}

/** @throws E_APP_UNKNOWN. */
export async function objectsOf(
  parts: AskedParts & { readonly coordinator: Coordinator },
  { app, session, detail = false, waits = false }: ObjectsQuery,
): Promise<ObjectsAnswer> {
  const { registry, coordinator } = parts;
  const all = await statsOf(parts, app);
  const question = { type: 'objects-get' as const, ...(session === undefined ? {} : { session }) };
  const details = detail || waits ? await askHosts(parts, app, question, ({ objects }) => objects) : [];
  const names = app === undefined ? [...registry.names()].sort() : [app];
  const apps = names.map((name) => {
    const held = coordinator.triggers.heldOf(name);
    const stats = all.filter((one) => one.app === name);
    const sum = (figure: (one: (typeof stats)[number]['stats']) => number) =>
      stats.reduce((total, one) => total + figure(one.stats), 0);
    const row = {
      app: name,
      memoryBytes: held.bytes + sum((one) => one.memoryBytes),
      spilledBytes: sum((one) => one.spilledBytes),
      persistedBytes: coordinator.persisted.bytesOf(name),
      objects: held.objects + sum((one) => one.objects),
      sessions: coordinator.table.liveOf(name),
    };
    if (!detail) return row;
    return {
      ...row,
      bySession: details.filter((one) => one.app === name).flatMap(({ said }) => said.bySession),
      held,
      stores: stats.map(({ version, stats: { store } }) => ({ version, ...store })),
    };
  });
  if (!waits) return { apps };
  const waiting: WaitingTrigger[] = details.flatMap(({ app: name, said }) =>
    said.waits.map((trigger) => ({ app: name, ...trigger })),
  );
  for (const name of session === undefined ? names : []) {
    for (const trigger of coordinator.triggers.waitsOf(name)) waiting.push({ app: name, session: null, ...trigger });
  }
  return { apps, waits: waiting };
}
