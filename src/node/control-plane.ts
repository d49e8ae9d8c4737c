// The gateway's port, answered by the parts of this process.

import { availableParallelism, freemem, totalmem } from 'node:os';
import { ERROR_TABLE } from '../base/index.ts';
import { APPS_MAX, type AppRegistry, BUNDLE_BYTES_MAX, VERSIONS_KEPT_MAX } from '../cluster/index.ts';
import { ANSWER_MS_MAX } from '../executor/host/index.ts';
import type { ControlPlane } from '../gateway/index.ts';
import type { Clock, Timers } from '../platform/index.ts';
import { type HostStats, type InstanceInfo, TRIGGER_VALUE_BYTES_MAX } from '../protocol/index.ts';
import {
  type Coordinator,
  DEAD_LETTER_BYTES_MAX,
  DEAD_LETTER_INPUT_BYTES_MAX,
  DEAD_LETTERS_MAX,
  DELAYED_SESSIONS_MAX,
  Door,
  ENDED_BYTES_MAX,
  ENDED_SESSIONS_MAX,
  HELD_BYTES_MAX,
  IDEMPOTENCY_WINDOW_MS,
  LIVE_INPUT_BYTES_MAX,
  LIVE_SESSIONS_MAX,
  LOST_RETRIES_MAX,
  OPEN_IDLE_TIMEOUT_MS,
  OUTPUTS_MAX,
  SESSION_RETENTION_MS,
  STARTS_UNDER_WAY_MAX,
  unknownApp,
  WATCHDOG_MS,
} from '../scheduler/index.ts';
import type { Supervisor } from '../supervisor/index.ts';
import { CUSTOM_STATE_CHARS_MAX, EVALUATION_QUEUE_MAX, EVALUATION_TRIES_MAX } from '../trigger/index.ts';
import type { Deployments } from './deployments.ts';
import { statsOf } from './host-answers.ts';
import { LOG_ENTRIES_MAX, type LogBook } from './log-book.ts';
import { metricsText } from './metrics.ts';
import { objectsOf } from './objects.ts';
import type { Settings } from './settings.ts';

export const NODE_NAME = 'local';

export interface ControlPlaneParts {
  readonly registry: AppRegistry;
  readonly coordinator: Coordinator;
  readonly supervisor: Supervisor;
  readonly deployments: Deployments;
  readonly logBook: LogBook;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly startedAtMs: number;
  readonly notReady: () => string | undefined;
}

export function createControlPlane(parts: ControlPlaneParts): ControlPlane {
  const { registry, coordinator, deployments, logBook, settings } = parts;
  const door = new Door(coordinator);
  return {
    deploy: (app, bundle, env) => deployments.deploy(app, bundle, env),
    listApps: async () => ({ apps: [...registry.names()].sort().map((app) => deployments.infoOf(app)) }),
    getApp: async (app) => deployments.infoOf(app),
    deleteApp: (app) => deployments.delete(app),
    putTrigger: (app, bucket, trigger, spec) => deployments.putTrigger(app, bucket, trigger, spec),
    deleteTrigger: (app, bucket, trigger) => deployments.deleteTrigger(app, bucket, trigger),
    refusal: (app, inputBytes) => door.refusal(app, inputBytes),
    startSession: (request) => door.startSession(request),
    putObject: (request) => door.putObject(request),
    closeGroup: (session, bucket) => door.closeGroup(session, bucket),
    join: (session, bucket, join) => door.join(session, bucket, join),
    openObject: (app, bucket, name, session, first) => door.openObject(app, bucket, name, session, first),
    deleteObject: (app, bucket, name) => door.deleteObject(app, bucket, name),
    listObjects: (app, bucket, query) => door.listObjects(app, bucket, query),
    getSession: (session) => door.getSession(session),
    sessionResult: (session, waitMs, signal) => door.sessionResult(session, waitMs, signal),
    trace: (session) => door.trace(session),
    outputs: (session, after, signal) => door.outputs(session, after, signal),
    listSessions: (query) => door.listSessions(query),
    cancelSession: (session) => door.cancelSession(session),
    retrySession: (session) => door.retrySession(session),
    forkSession: (session) => door.forkSession(session),
    objects: (query) => objectsOf(parts, query),
    instances: (app) => instances(parts, app),
    nodes: async () => ({ nodes: [node(parts)] }),
    deadLetters: ({ app, limit }) => door.letters.list(app, limit),
    deadLetter: (id) => door.letters.get(id),
    retryDeadLetter: (id) => door.letters.retry(id),
    dropDeadLetter: (id) => door.letters.drop(id),
    limits: async () => ({ limits: limits(settings) }),
    logs: (query, signal) => {
      if (query.app !== undefined && registry.current(query.app) === undefined) {
        throw unknownApp(query.app, registry.names());
      }
      return logBook.read(query, signal);
    },
    metrics: async () => metrics(parts, await statsOf(parts, undefined)),
    notReady: parts.notReady,
    bodyBytesMax: settings.bodyBytesMax,
  };
}

async function instances(
  parts: ControlPlaneParts,
  app: string | undefined,
): Promise<{ instances: readonly InstanceInfo[] }> {
  const all = await statsOf(parts, app);
  const list: InstanceInfo[] = [];
  for (const { app: name, version, stats } of all) {
    for (const instance of stats.instances) list.push({ ...instance, app: name, version, node: NODE_NAME });
  }
  return { instances: list };
}

function node({ supervisor, startedAtMs }: ControlPlaneParts) {
  const hosts = supervisor.states().map(({ app, version, state, pid }) => ({ app, version, state, pid: pid ?? null }));
  return {
    node: NODE_NAME,
    roles: ['gateway', 'coordinator', 'worker'],
    state: 'up',
    pid: process.pid,
    startedAt: new Date(startedAtMs).toISOString(),
    memoryBytes: process.memoryUsage().rss,
    machineMemoryBytes: totalmem(),
    machineMemoryFreeBytes: freemem(),
    cpus: availableParallelism(),
    hosts,
  };
}

function limits(settings: Settings): { name: string; value: number | string; unit?: string; why: string }[] {
  const bytes = (name: string, value: number, why: string) => ({ name, value, unit: 'bytes', why });
  const count = (name: string, value: number, why: string) => ({ name, value, why });
  const ms = (name: string, value: number, why: string) => ({ name, value, unit: 'ms', why });
  return [
    bytes('bodyBytesMax', settings.bodyBytesMax, 'one request body or value; above it 413 E_BODY_TOO_LARGE'),
    bytes(
      'objectBytesMax',
      settings.objectBytesMax,
      'memory for the objects of one app host; a quarter of the machine. Above it objects that nobody uses go to disk',
    ),
    bytes(
      'objectOverBytesMax',
      settings.objectOverBytesMax,
      'memory above objectBytesMax for objects in use, which cannot go to disk; above it E_QUOTA_EXCEEDED',
    ),
    bytes('spillBytesMax', settings.spillBytesMax, 'objects of one app host on disk (<data>/spill)'),
    bytes('persistedBytesMax', settings.persistedBytesMax, 'persisted objects of one app; above it E_QUOTA_EXCEEDED'),
    ms('persistedRetentionMs', settings.persistedRetentionMs, 'persisted objects are kept so long; 0: until deleted'),
    bytes('inlineBytesMax', settings.inlineBytesMax, 'objects up to this ride inside the message that needs them'),
    count('instancesMax', settings.instancesMax, 'instances of one app host; four per processor'),
    count(
      'queueMax',
      settings.queueMax,
      'invocations of sessions that have not begun, per app; above it 503 E_QUEUE_FULL',
    ),
    count('startsUnderWayMax', STARTS_UNDER_WAY_MAX, 'starts that an app host was given and has not begun'),
    ...Object.entries(settings.weights).map(([app, weight]) =>
      count(`weights.${app}`, weight, 'share of what apps compete for; 1 where nothing is said'),
    ),
    count('liveSessionsMax', LIVE_SESSIONS_MAX, 'sessions of one app that have not ended, running ones included'),
    count('delayedSessionsMax', DELAYED_SESSIONS_MAX, 'sessions of one app that wait for their delayMs'),
    bytes(
      'liveInputBytesMax',
      LIVE_INPUT_BYTES_MAX,
      'inputs of sessions that have not ended, kept to execute them again',
    ),
    count('lostRetriesMax', LOST_RETRIES_MAX, 'executions again after the app host died; then E_NODE_LOST'),
    bytes('heldBytesMax', HELD_BYTES_MAX, 'objects that the bucket-scoped triggers of one app hold'),
    count('evaluationTriesMax', EVALUATION_TRIES_MAX, 'askings of a trigger class about one event in which it fails'),
    ms('evaluationMsMax', ANSWER_MS_MAX, 'a trigger class or validator that holds its instance longer has failed'),
    count('evaluationQueueMax', EVALUATION_QUEUE_MAX, 'events that wait for one trigger class; above it 429'),
    bytes('triggerValueBytesMax', TRIGGER_VALUE_BYTES_MAX, 'values of objects that a trigger class can read'),
    count('customStateCharsMax', CUSTOM_STATE_CHARS_MAX, 'characters of what a trigger class keeps, as JSON'),
    count('outputsMax', OUTPUTS_MAX, 'outputs of one session that are kept for replay'),
    ms('sessionRetentionMs', SESSION_RETENTION_MS, 'records and outputs of asynchronous and idempotent sessions'),
    ms('idempotencyWindowMs', IDEMPOTENCY_WINDOW_MS, 'how long an idempotency key means the same session'),
    ms('watchdogMs', WATCHDOG_MS, 'how often it is checked that every session can go on; else it is parked'),
    ms('openIdleTimeoutMs', OPEN_IDLE_TIMEOUT_MS, 'an open session that gets nothing ends after this'),
    count('endedSessionsMax', ENDED_SESSIONS_MAX, 'records of synchronous sessions without a key, newest kept'),
    bytes('endedBytesMax', ENDED_BYTES_MAX, 'the same by bytes'),
    count('deadLettersMax', DEAD_LETTERS_MAX, 'dead letters of one app; the oldest makes room and is counted'),
    bytes('deadLetterBytesMax', DEAD_LETTER_BYTES_MAX, 'the same by the bytes of their inputs'),
    bytes('deadLetterInputBytesMax', DEAD_LETTER_INPUT_BYTES_MAX, 'inputs of one letter kept for a retry'),
    count('appsMax', APPS_MAX, 'apps of one server'),
    bytes('bundleBytesMax', BUNDLE_BYTES_MAX, 'files of one bundle together'),
    count(
      'versionsKeptMax',
      VERSIONS_KEPT_MAX,
      'newest versions of one app that are kept; older ones go when no session uses them',
    ),
    count('logEntriesMax', LOG_ENTRIES_MAX, 'log entries of all apps, newest kept'),
    count('errorCodes', Object.keys(ERROR_TABLE).length, 'codes that an answer can bear'),
  ];
}

function metrics(
  parts: ControlPlaneParts,
  hosts: readonly { readonly app: string; readonly version: string; readonly stats: HostStats }[],
): string {
  const { coordinator, supervisor, registry } = parts;
  const { counters } = coordinator;
  const apps = [...registry.names()];
  const states = new Map<string, number>();
  for (const { state } of supervisor.states()) states.set(state, (states.get(state) ?? 0) + 1);
  const one = (value: number) => [{ value }];
  const perHost = (figure: (stats: HostStats) => number) =>
    hosts.map(({ app, version, stats }) => ({ labels: { app, version }, value: figure(stats) }));
  return metricsText([
    {
      name: 'antrail_sessions_accepted_total',
      type: 'counter',
      help: 'Sessions that were accepted.',
      samples: one(counters.accepted),
    },
    {
      name: 'antrail_sessions_refused_total',
      type: 'counter',
      help: 'Starts refused because a queue was full.',
      samples: one(counters.refused),
    },
    {
      name: 'antrail_sessions_ended_total',
      type: 'counter',
      help: 'Sessions that ended, by state.',
      samples: (['completed', 'failed', 'cancelled'] as const).map((state) => ({
        labels: { state },
        value: counters[state],
      })),
    },
    {
      name: 'antrail_sessions_executed_again_total',
      type: 'counter',
      help: 'Executions again after an app host was lost.',
      samples: one(counters.executedAgain),
    },
    {
      name: 'antrail_firings_total',
      type: 'counter',
      help: 'Firings of bucket-scoped triggers.',
      samples: one(counters.firings),
    },
    {
      name: 'antrail_outputs_total',
      type: 'counter',
      help: 'Output objects of sessions.',
      samples: one(counters.outputs),
    },
    {
      name: 'antrail_sessions_live',
      type: 'gauge',
      help: 'Sessions that have not ended.',
      samples: apps.map((app) => ({ labels: { app }, value: coordinator.table.liveOf(app) })),
    },
    {
      name: 'antrail_traces_kept',
      type: 'gauge',
      help: 'Traces of ended synchronous sessions that the server has from their hosts.',
      samples: one(coordinator.archive.traceCount),
    },
    {
      name: 'antrail_dead_letters',
      type: 'gauge',
      help: 'Invocations that failed for good and were neither retried nor dropped.',
      samples: apps.map((app) => ({ labels: { app }, value: coordinator.letters.countOf(app) })),
    },
    {
      name: 'antrail_dead_letters_dropped_total',
      type: 'counter',
      help: 'Dead letters that made room for newer ones.',
      samples: apps.map((app) => ({ labels: { app }, value: coordinator.letters.droppedOf(app) })),
    },
    {
      name: 'antrail_held_bytes',
      type: 'gauge',
      help: 'Objects that bucket-scoped triggers hold.',
      samples: apps.map((app) => ({ labels: { app }, value: coordinator.triggers.heldOf(app).bytes })),
    },
    {
      name: 'antrail_persisted_bytes',
      type: 'gauge',
      help: 'Persisted objects.',
      samples: apps.map((app) => ({ labels: { app }, value: coordinator.persisted.bytesOf(app) })),
    },
    {
      name: 'antrail_app_hosts',
      type: 'gauge',
      help: 'App hosts, by state.',
      samples: Array.from(states, ([state, value]) => ({ labels: { state }, value })),
    },
    {
      name: 'antrail_object_memory_bytes',
      type: 'gauge',
      help: 'Memory of the object store of an app host that is in use.',
      samples: perHost((stats) => stats.store.usedBytes),
    },
    {
      name: 'antrail_object_spilled_bytes',
      type: 'gauge',
      help: 'Objects of an app host that are on disk only.',
      samples: perHost((stats) => stats.spilledBytes),
    },
    {
      name: 'antrail_object_hand_offs_zero_copy_total',
      type: 'counter',
      help: 'Objects that reached an instance without a copy of their bytes.',
      samples: perHost((stats) => stats.zeroCopyHandOffs),
    },
    {
      name: 'antrail_object_bytes_moved_total',
      type: 'counter',
      help: 'Bytes of the objects that reached an instance, copied or not.',
      samples: perHost((stats) => stats.objectBytesMoved),
    },
    {
      name: 'antrail_attempts_started_total',
      type: 'counter',
      help: 'Attempts that began, by kind of start.',
      samples: hosts.flatMap(({ app, version, stats }) =>
        Object.entries(stats.startKinds).map(([start, value]) => ({ labels: { app, version, start }, value })),
      ),
    },
    {
      name: 'antrail_hop_seconds',
      type: 'gauge',
      help: 'From a send to the start of the function that it triggers, over the last samples.',
      samples: hosts.flatMap(({ app, version, stats }) =>
        stats.hops.flatMap(({ function: name, p50Ms, p99Ms }) => [
          { labels: { app, version, function: name, quantile: '0.5' }, value: p50Ms / 1_000 },
          { labels: { app, version, function: name, quantile: '0.99' }, value: p99Ms / 1_000 },
        ]),
      ),
    },
    {
      name: 'process_resident_memory_bytes',
      type: 'gauge',
      help: 'Resident memory of the server process.',
      samples: one(process.memoryUsage().rss),
    },
  ]);
}
