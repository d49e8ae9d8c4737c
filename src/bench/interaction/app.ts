// The app that suite `interaction` deploys. Its functions take the time of what happens between them.
//
// Times are those of nowUs, so that readings of two threads can be subtracted. What a successor cannot be told in time (the
// end of the send that made it) its thread remembers.

import { setTimeout } from 'node:timers/promises';
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

/** What the first and the last byte of a handed-over object are. */
const MARK = 7;
const CONTENT_JSON = 'application/json';

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

export interface VolleyOrder {
  readonly hops: number;
  /** Size of the object that is handed on; 0: a small value instead. */
  readonly bytes: number;
  /** Whether each hop has an object of its own, created and filled by its sender; else one is handed on and on. */
  readonly fresh: boolean;
  /** Milliseconds that everything sleeps before each send; 0: a closed loop. */
  readonly gapMs: number;
}

/** Microseconds from before each send to the first line of the successor; for an object, to after its ends were read. */
export type Volley = readonly number[];

/**
 * Hops to and fro between two pools of one instance each: a successor can only run on the other one. What a thread has
 * measured stays there until the last hop, so that nothing but the hop is between the readings.
 */
const volley = fn(async (ctx, [input]: Inputs<VolleyOrder>) => {
  const { hops, bytes, fresh, gapMs } = input.json();
  const object = bytes === 0 ? undefined : timedObject(ctx, 'pings', bytes);
  await strike(ctx, 'pings', object ?? 0, { left: hops, fresh, gapMs, bytes, first: true });
});
const ping = fn((ctx, [ball]) => receive(ctx, ball, 'pongs'), { pool: 'ping' });
const pong = fn((ctx, [ball]) => receive(ctx, ball, 'pings'), { pool: 'pong' });
const pingTimes = fn((ctx, [other]: Inputs<number[]>) => tellTimes(ctx, other.json()), { pool: 'ping' });
const pongTimes = fn((ctx, [other]: Inputs<number[]>) => tellTimes(ctx, other.json()), { pool: 'pong' });

interface Flight extends Omit<VolleyOrder, 'hops'> {
  /** Sends that are still to come. */
  readonly left: number;
  /** From the entry, which has a pool of its own: not counted. */
  readonly first: boolean;
}

/** This thread's hops of the session that is under way: there is one at a time. */
let hopsHere: number[] = [];

/** Not async unless it must sleep: promises are not what is measured. */
function receive(ctx: Ctx, ball: EpheObject, next: 'pings' | 'pongs'): void | Promise<void> {
  if (ball.contentType !== CONTENT_JSON && (ball.bytes[0] !== MARK || ball.bytes[ball.size - 1] !== MARK)) {
    throw new Error('the object is not what was sent');
  }
  const startedUs = nowUs();
  const [left = 0, fresh = 0, gapMs = 0, bytes = 0, first = 0, sentUs = 0] = ball.group.split(' ').map(Number);
  if (first === 0) hopsHere.push(startedUs - sentUs);
  if (left <= 1) {
    ctx.send(next === 'pings' ? 'pingTimes' : 'pongTimes', hopsHere);
    hopsHere = [];
    return;
  }
  const flight = { left: left - 1, fresh: fresh === 1, gapMs, bytes, first: false };
  const object = bytes > 0 && flight.fresh ? timedObject(ctx, next, bytes) : bytes > 0 ? ball : 0;
  return strike(ctx, next, object, flight);
}

function strike(ctx: Ctx, next: string, ball: EpheObject | 0, flight: Flight): void | Promise<void> {
  const { left, fresh, gapMs, bytes, first } = flight;
  const group = `${left} ${fresh ? 1 : 0} ${gapMs} ${bytes} ${first ? 1 : 0}`;
  const send = () => {
    if (ball !== 0 && fresh) ctx.sendObject(ball, { group: `${group} ${nowUs()}` });
    else ctx.send(next, ball, { group: `${group} ${nowUs()}` });
  };
  if (gapMs > 0) return setTimeout(gapMs).then(send);
  send();
}

function tellTimes(ctx: Ctx, others: readonly number[]): void {
  ctx.output([...others, ...hopsHere] satisfies Volley);
  hopsHere = [];
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
  object.bytes[0] = MARK;
  object.bytes[bytes - 1] = MARK;
  return object;
}

const inWindow = (windowMs: number) => bucket({ on: { end: byTime({ windowMs, scope: 'session', run: 'windowed' }) } });

export default app('antrail-bench', {
  entry: 'echo',
  functions: {
    inline,
    inlineAsync,
    inlineNext,
    volley,
    ping,
    pong,
    pingTimes,
    pongTimes,
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
    pings: bucket({ on: { next: immediate({ run: 'ping' }) } }),
    pongs: bucket({ on: { next: immediate({ run: 'pong' }) } }),
    pingTimes: bucket({ on: { next: immediate({ run: 'pingTimes' }) } }),
    pongTimes: bucket({ on: { next: immediate({ run: 'pongTimes' }) } }),
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
