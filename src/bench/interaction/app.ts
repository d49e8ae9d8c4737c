// The app that suite `interaction` deploys. Its functions take the time of what happens between them.
//
// Times are those of nowUs, so that readings of two threads can be subtracted. What a successor cannot be told in time (the
// end of the send that made it) its thread remembers.

import { setImmediate, setTimeout } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';
import {
  app,
  bucket,
  byTime,
  type Ctx,
  dynamicJoin,
  type EpheObject,
  fn,
  type Inputs,
  immediate,
} from '../../sdk/index.ts';
import { nowUs } from '../now.ts';

/** How long a sender stays occupied after its send: longer than a hop to another instance. */
const HELD_MS = 1;
/** Longer than a timer of HELD_MS takes: whoever sent before is asleep again. */
const SETTLED_US = 2_500;
/** What the last byte of a handed-over object is; the time it was sent is in its first 8. */
const MARK = 7;
export const TIMED_BYTES_MIN = 9;

/** When the latest send of this thread had ended. */
let sendEndedUs = 0;
let sendBeganUs = 0;

export interface InlineHop {
  /** From the end of `send` to the first line of the successor; undefined: another instance took it. */
  readonly hopUs?: number;
  /** What `ctx.send` itself took. */
  readonly sendUs: number;
}

function timedSend(ctx: Ctx, bucketName: string): void {
  sendBeganUs = nowUs();
  ctx.send(bucketName, threadId);
  sendEndedUs = nowUs();
}

const inline = fn((ctx) => timedSend(ctx, 'inline'));
const inlineAsync = fn(async (ctx) => timedSend(ctx, 'inline'));
const inlineNext = fn((ctx, [input]) => {
  const startedUs = nowUs();
  const here = input.json() === threadId;
  const sendUs = sendEndedUs - sendBeganUs;
  ctx.output((here ? { hopUs: startedUs - sendEndedUs, sendUs } : { sendUs: 0 }) satisfies InlineHop);
});

export interface RelayOrder {
  readonly hops: number;
  /** Size of the object that is handed on at each hop, TIMED_BYTES_MIN or more; 0: a small value instead. */
  readonly bytes: number;
  /** Milliseconds that everything sleeps before each send; 0: the sender stays awake. */
  readonly gapMs: number;
}

/** Microseconds from before each send to the first line of the successor; for an object, to after its last byte was read. */
export type Relay = readonly number[];

/**
 * Hops to and fro between instances. A sender goes on for HELD_MS after its send without using its core: its instance stays
 * occupied, so that the successor must run on another one. The executor learns that and offers the successor at once.
 */
const relay = fn((ctx, [input]: Inputs<RelayOrder>) => {
  const order = input.json();
  ctx.join('hops', order.hops);
  return passOn(ctx, order);
});
const relayed = fn((ctx, [input]) => {
  const startedUs = nowUs();
  const small = input.contentType === 'application/json';
  const sentUs = small ? (input.json() as number) : timeIn(input);
  const hopUs = (small ? startedUs : nowUs()) - sentUs;
  ctx.send('hops', hopUs);
  const [hops = 0, gapMs = 0] = input.group.split(' ').map(Number);
  return hops === 0 ? undefined : passOn(ctx, { hops, gapMs, bytes: small ? 0 : input.size });
});
const relayDone = fn((ctx, hops: Inputs<number>) => ctx.output(hops.map((hop) => hop.json()) satisfies Relay));

async function passOn(ctx: Ctx, { hops, bytes, gapMs }: RelayOrder): Promise<void> {
  const object = bytes === 0 ? undefined : timedObject(ctx, 'relay', bytes);
  // What was told so far is read before the send, not with it.
  await setImmediate();
  if (gapMs === 0) stayAwake(SETTLED_US);
  else {
    await setTimeout(HELD_MS);
    await setTimeout(gapMs);
  }
  sendTimed(ctx, 'relay', object, `${hops - 1} ${gapMs}`);
  await setTimeout(HELD_MS);
}

function stayAwake(us: number): void {
  const endUs = nowUs() + us;
  while (nowUs() < endUs);
}

interface Link {
  readonly left: number;
  readonly thread: number;
  readonly sentUs: number;
  readonly hopsUs: number;
  readonly firstUs: number;
}

export interface Chain {
  /** All hops together, each from the end of the send to the first line of the next. */
  readonly hopsUs: number;
  /** First line of the first to first line of the last. */
  readonly wholeUs: number;
}

const chain = fn((ctx, [input]: Inputs<number>) => {
  link(ctx, { left: input.json(), hopsUs: 0, firstUs: nowUs() });
});
const chainNext = fn((ctx, [input]: Inputs<Link>) => {
  const startedUs = nowUs();
  const { left, thread, sentUs, hopsUs, firstUs } = input.json();
  const sum = hopsUs + startedUs - (thread === threadId ? sendEndedUs : sentUs);
  if (left > 0) link(ctx, { left, hopsUs: sum, firstUs });
  else ctx.output({ hopsUs: sum, wholeUs: startedUs - firstUs } satisfies Chain);
});
function link(ctx: Ctx, { left, hopsUs, firstUs }: Omit<Link, 'thread' | 'sentUs'>): void {
  ctx.send('chain', { left: left - 1, thread: threadId, sentUs: nowUs(), hopsUs, firstUs } satisfies Link);
  sendEndedUs = nowUs();
}

export interface FanOrder {
  readonly branches: number;
  /** Of the object that each branch gets and passes on. */
  readonly bytes: number;
}

export interface Fan {
  /** First line of the entry, which sends to all branches. */
  readonly startedUs: number;
  /** Before the first send to the first line of the last branch. */
  readonly outUs: number;
  /** Before the last branch's send to the first line of who joins them. */
  readonly inUs: number;
  /** Before the output. */
  readonly outputUs: number;
}

const fan = fn((ctx, [input]: Inputs<FanOrder>) => {
  const startedUs = nowUs();
  const { branches, bytes } = input.json();
  const objects = Array.from({ length: branches }, () => timedObject(ctx, 'branches', bytes));
  ctx.join('joined', branches);
  const sentUs = nowUs();
  for (const object of objects) ctx.sendObject(object, { group: `${startedUs} ${sentUs}` });
});
const branch = fn((ctx, [input]) => {
  const startedUs = nowUs();
  if (input.bytes[input.size - 1] !== MARK) throw new Error('the object is not what was sent');
  ctx.send('joined', input, { group: `${input.group} ${startedUs} ${nowUs()}` });
});
const joined = fn((ctx, inputs) => {
  const gotUs = nowUs();
  const times = inputs.map((input) => input.group.split(' ').map(Number));
  const latest = (at: number) => Math.max(...times.map((row) => row[at] ?? 0));
  const [startedUs, firstUs, branchUs, sentUs] = [latest(0), latest(1), latest(2), latest(3)];
  ctx.output({ startedUs, outUs: branchUs - firstUs, inUs: gotUs - sentUs, outputUs: nowUs() } satisfies Fan);
});

/** First line of who sends to all leaves to first line of who joins them. */
export interface Gathered {
  readonly tookUs: number;
}

const spread = fn((ctx, [input]: Inputs<number>) => {
  const startedUs = nowUs();
  const leaves = input.json();
  ctx.join('leaves', leaves);
  for (let i = 0; i < leaves; i++) ctx.send('spread', startedUs);
});
const leaf = fn((ctx, [input]: Inputs<number>) => ctx.send('leaves', input.json()));
const gathered = fn((ctx, [first]: Inputs<number>) => {
  const tookUs = nowUs() - first.json();
  ctx.output({ tookUs } satisfies Gathered);
});

export interface WindowOrder {
  readonly objects: number;
  /** Of the declared ones, by its length. */
  readonly windowMs: (typeof WINDOWS_MS)[number];
}

export interface Window {
  /** From the window's end to the first line of who got its objects. */
  readonly delayUs: number;
  /** How many that were: fewer than were sent if some came too late for it. */
  readonly objects: number;
}

export const WINDOWS_MS = [100, 500, 2_000] as const;

/** A window of a session begins with the session's first object in its bucket. */
const window = fn((ctx, [input]: Inputs<WindowOrder>) => {
  const { objects, windowMs } = input.json();
  const name = `window${windowMs}`;
  const endsUs = nowUs() + windowMs * 1_000;
  for (let i = 0; i < objects; i++) ctx.send(name, endsUs);
});
const windowed = fn((ctx, objects: Inputs<number>) => {
  const startedUs = nowUs();
  ctx.output({ delayUs: startedUs - objects[0].json(), objects: objects.length } satisfies Window);
});

const echo = fn((_, [input]) => input.json());

function timedObject(ctx: Ctx, bucketName: string, bytes: number): EpheObject {
  const object = ctx.createObject(bucketName, bytes);
  object.bytes[bytes - 1] = MARK;
  return object;
}

/** Sends the object with the time in it, or without one the time itself. */
function sendTimed(ctx: Ctx, bucketName: string, object: EpheObject | undefined, group: string): void {
  if (object === undefined) {
    ctx.send(bucketName, nowUs(), { group });
    return;
  }
  const { buffer, byteOffset } = object.bytes;
  new DataView(buffer, byteOffset).setFloat64(0, nowUs());
  ctx.sendObject(object, { group });
}

function timeIn({ bytes }: EpheObject): number {
  if (bytes[bytes.length - 1] !== MARK) throw new Error('the object is not what was sent');
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0);
}

const inWindow = (windowMs: number) => bucket({ on: { end: byTime({ windowMs, scope: 'session', run: 'windowed' }) } });

export default app('antrail-bench', {
  entry: 'echo',
  functions: {
    inline,
    inlineAsync,
    inlineNext,
    relay,
    relayed,
    relayDone,
    chain,
    chainNext,
    fan,
    branch,
    joined,
    spread,
    leaf,
    gathered,
    window,
    windowed,
    echo,
  },
  buckets: {
    inline: bucket({ on: { next: immediate({ run: 'inlineNext' }) } }),
    relay: bucket({ on: { next: immediate({ run: 'relayed' }) } }),
    hops: bucket({ on: { all: dynamicJoin({ run: 'relayDone' }) } }),
    chain: bucket({ on: { next: immediate({ run: 'chainNext' }) } }),
    branches: bucket({ on: { each: immediate({ run: 'branch' }) } }),
    joined: bucket({ on: { all: dynamicJoin({ run: 'joined' }) } }),
    spread: bucket({ on: { each: immediate({ run: 'leaf' }) } }),
    leaves: bucket({ on: { all: dynamicJoin({ run: 'gathered' }) } }),
    window100: inWindow(100),
    window500: inWindow(500),
    window2000: inWindow(2_000),
  },
});
