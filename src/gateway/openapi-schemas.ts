// Schemas of the gateway's own JSON, as OpenAPI shows them. Shapes: src/protocol.

import { ERROR_TABLE } from '../base/index.ts';

const text = { type: 'string' };
const number = { type: 'number' };
const integer = { type: 'integer' };
const boolean = { type: 'boolean' };
const time = { type: 'string', format: 'date-time' };
const any = {};
const listOf = (items: unknown) => ({ type: 'array', items });
const mapOf = (additionalProperties: unknown) => ({ type: 'object', additionalProperties });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** @param fields a name ending in `?` is optional. */
function record(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = Object.keys(fields);
  const properties = Object.fromEntries(names.map((name) => [name.replace('?', ''), fields[name]]));
  return { type: 'object', required: names.filter((name) => !name.endsWith('?')), properties };
}

const letterFields = {
  id: text,
  app: text,
  version: text,
  function: text,
  session: text,
  invocation: text,
  firing: { type: ['string', 'null'] },
  at: time,
  attemptCount: integer,
  retries: integer,
  'retrySession?': text,
};

export const SCHEMAS: Readonly<Record<string, unknown>> = {
  Any: any,
  Problem: record({
    type: { type: 'string', format: 'uri-reference' },
    title: text,
    status: integer,
    code: { type: 'string', enum: Object.keys(ERROR_TABLE) },
    detail: text,
    'retryAfterMs?': number,
    'session?': text,
    'didYouMean?': text,
    'position?': { type: 'integer', description: '0-based, UTF-16 units' },
    'limitBytes?': integer,
    'issues?': listOf(any),
    'problems?': listOf(record({ message: text, 'file?': text, 'line?': integer })),
    'name?': text,
    'stack?': text,
    'cause?': ref('ProblemCause'),
  }),
  ProblemCause: record({ code: text, 'name?': text, message: text, 'stack?': text, 'cause?': ref('ProblemCause') }),
  Status: record({ status: text }),
  SessionReference: record({ session: text }),
  AppReference: record({ app: text }),
  DeadLetterReference: record({ id: text }),
  TriggerReference: record({ app: text, bucket: text, trigger: text }),
  ObjectTaken: record({ session: text, duplicate: boolean }),
  SessionStart: record({ entries: listOf(record({ function: text, 'input?': any })), 'tags?': mapOf(text) }),
  Join: { oneOf: [record({ names: listOf(text) }), record({ count: { type: 'integer', minimum: 0 } })] },
  Bundle: record({
    manifest: ref('Manifest'),
    main: text,
    files: mapOf({ oneOf: [text, record({ base64: text })] }),
    'env?': mapOf(text),
  }),
  Manifest: record({
    entry: text,
    functions: mapOf(record({ kind: { type: 'string', enum: ['fn', 'durable'] }, 'runtime?': text, 'options?': any })),
    buckets: mapOf(record({ 'on?': mapOf(ref('Trigger')), 'rerun?': listOf(any), 'schema?': boolean })),
    'state?': any,
    'env?': any,
    'secrets?': listOf(text),
    'routes?': any,
    'cron?': any,
  }),
  Trigger: record({ kind: text, 'run?': { oneOf: [text, listOf(text)] } }),
  Deployed: record({ app: text, version: text }),
  App: record({
    app: text,
    version: text,
    deployedAt: time,
    manifest: ref('Manifest'),
    versions: listOf(record({ version: text, deployedAt: time, current: boolean, usedBy: integer })),
  }),
  Apps: record({ apps: listOf(ref('App')) }),
  Session: record({
    session: text,
    app: text,
    version: text,
    function: text,
    state: { type: 'string', enum: ['running', 'completed', 'failed', 'cancelled', 'parked'] },
    'result?': any,
    'error?': any,
    tags: mapOf(text),
    causes: listOf(text),
    'causesCount?': integer,
    unfired: listOf(record({ bucket: text, trigger: text, held: integer, waitsFor: text })),
    startedAt: time,
    'endedAt?': time,
    counts: record({ invocations: integer, attempts: integer, objects: integer, bytes: integer, firings: integer }),
    meteredMs: number,
    'retryOf?': text,
    'forkOf?': text,
  }),
  SessionPage: record({ sessions: listOf(ref('Session')), 'cursor?': text }),
  Trace: record({
    session: text,
    invocations: listOf(
      record({
        id: text,
        function: text,
        firing: { type: ['string', 'null'] },
        parent: { type: ['string', 'null'] },
        attempts: listOf(
          record({
            n: integer,
            node: text,
            instance: text,
            start: { type: 'string', enum: ['inline', 'warm', 'takeover', 'prewarmed', 'cold'] },
            queuedAt: time,
            startedAt: time,
            endedAt: { type: ['string', 'null'] },
            outcome: text,
          }),
        ),
        in: listOf(text),
        out: listOf(text),
      }),
    ),
    'dropped?': integer,
  }),
  Objects: record({
    apps: listOf(
      record({
        app: text,
        memoryBytes: integer,
        spilledBytes: integer,
        persistedBytes: integer,
        objects: integer,
        sessions: integer,
        'bySession?': listOf(record({ session: text, memoryBytes: integer, spilledBytes: integer, objects: integer })),
        'held?': record({ objects: integer, bytes: integer }),
        'stores?': listOf(
          record({
            version: text,
            usedBytes: integer,
            budgetBytes: integer,
            capacityBytes: integer,
            blockBytes: integer,
            fileBytes: integer,
          }),
        ),
      }),
    ),
    'waits?': listOf(
      record({
        app: text,
        session: { type: ['string', 'null'] },
        bucket: text,
        trigger: text,
        held: integer,
        waitsFor: text,
      }),
    ),
  }),
  Instances: record({ instances: listOf(any) }),
  Nodes: record({ nodes: listOf(any) }),
  DeadLetters: record({
    deadLetters: listOf(record({ ...letterFields, error: record({ code: text, message: text, 'name?': text }) })),
    dropped: { type: 'integer', description: 'how many made room for newer ones' },
  }),
  DeadLetter: record({
    ...letterFields,
    error: ref('ProblemCause'),
    attempts: listOf(any),
    inputs: listOf(
      record({
        id: text,
        bucket: text,
        name: text,
        group: text,
        contentType: text,
        size: integer,
        'json?': any,
        'base64?': text,
      }),
    ),
    inputsKept: { type: 'boolean', description: 'false: too large to be kept, so it cannot be retried' },
  }),
  Limits: record({ limits: listOf(record({ name: text, value: {}, 'unit?': text, why: text })) }),
  LogEntry: record({
    at: time,
    app: text,
    version: text,
    level: { type: 'string', enum: ['debug', 'info', 'warn', 'error'] },
    message: text,
    'session?': text,
    'invocation?': text,
    'function?': text,
    'instance?': text,
    'fields?': any,
  }),
};
