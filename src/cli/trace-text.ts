// A session's trace as a tree with a waterfall: who set off whom, how long each waited and ran.

import { unreachable } from '../base/index.ts';
import type { AttemptOutcome, AttemptTrace, InvocationTrace, SessionTrace, StartKind } from '../protocol/index.ts';
import { type Color, type Column, count, duration, isoMs, type Paint, printable, shorten, table } from './text.ts';

const BAR_CHARS_MIN = 10;
const BAR_CHARS_MAX = 50;
const NAME_CHARS_MAX = 50;
/** Deeper ones are drawn at this depth: a chain of a thousand must not draw a thousand columns. */
const DEPTH_MAX = 12;

interface Row {
  readonly label: string;
  readonly attempt: AttemptTrace | undefined;
  readonly invocation: InvocationTrace;
}

export interface TraceOptions {
  /** Lines at most; the rest is counted. */
  readonly rowsMax: number;
  readonly columns: number;
}

export function traceText(trace: SessionTrace, options: TraceOptions, paint: Paint): string {
  const rows = rowsOf(trace.invocations);
  const shown = rows.slice(0, options.rowsMax);
  const [startMs, endMs] = spanOf(rows);
  const attempts = trace.invocations.reduce((sum, { attempts: list }) => sum + list.length, 0);
  const head = `${paint('bold', trace.session)}  ${duration(Math.max(0, endMs - startMs))}  ${count(
    trace.invocations.length + (trace.dropped ?? 0),
    'invocation',
  )}, ${count(attempts, 'attempt')}\n`;
  const columns: Column<Row>[] = [
    { title: 'invocation', value: ({ label }) => label },
    { title: 'firing', value: ({ invocation }) => invocation.firing ?? '' },
    { title: 'start', value: ({ attempt }) => attempt?.start, color: ({ attempt }) => startColor(attempt?.start) },
    { title: 'queued', value: ({ attempt }) => queuedText(attempt), align: 'right' },
    { title: 'ran', value: ({ attempt }) => ranText(attempt), align: 'right' },
    { title: 'outcome', value: outcomeText, color: ({ attempt }) => outcomeColor(attempt?.outcome) },
  ];
  const width = Math.max(
    ...table(shown, columns, (_, text) => text)
      .split('\n')
      .map((line) => line.length),
  );
  const barChars = Math.min(BAR_CHARS_MAX, options.columns - width - 2);
  if (barChars >= BAR_CHARS_MIN) {
    columns.push({
      title: `0 … ${duration(Math.max(0, endMs - startMs))}`,
      value: ({ attempt }) => (attempt === undefined ? '' : bar(attempt, startMs, endMs, barChars)),
    });
  }
  const left = rows.length - shown.length;
  const tail = [
    left > 0 ? `${count(left, 'more line')} (--all, or --json for a program)` : undefined,
    trace.dropped === undefined ? undefined : `${count(trace.dropped, 'invocation')} not kept: the trace is too long`,
  ].filter((line) => line !== undefined);
  return head + table(shown, columns, paint) + tail.map((line) => `${paint('dim', line)}\n`).join('');
}

/** Depth first, siblings by time; iterative, for chains of any length. Parents that are not there make roots. */
function rowsOf(invocations: readonly InvocationTrace[]): Row[] {
  const ids = new Set(invocations.map(({ id }) => id));
  const children = new Map<string | null, InvocationTrace[]>();
  for (const invocation of invocations) {
    const parent = invocation.parent !== null && ids.has(invocation.parent) ? invocation.parent : null;
    const list = children.get(parent);
    if (list === undefined) children.set(parent, [invocation]);
    else list.push(invocation);
  }
  for (const list of children.values()) list.sort((a, b) => firstMs(a) - firstMs(b));

  const rows: Row[] = [];
  const drawn = new Set<string>();
  const stack = [...(children.get(null) ?? [])]
    .reverse()
    .map((invocation) => ({ invocation, depth: 0, last: true, lines: '' }));
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { invocation, depth, last, lines } = next;
    if (drawn.has(invocation.id)) continue;
    drawn.add(invocation.id);
    const branch = depth === 0 ? '' : `${lines}${last ? '└─ ' : '├─ '}`;
    rows.push(...rowsOfInvocation(invocation, branch));
    const below = depth === 0 ? '' : depth > DEPTH_MAX ? lines : `${lines}${last ? '   ' : '│  '}`;
    const list = children.get(invocation.id) ?? [];
    for (let i = list.length - 1; i >= 0; i--) {
      stack.push({
        invocation: list[i] as InvocationTrace,
        depth: depth + 1,
        last: i === list.length - 1,
        lines: below,
      });
    }
  }
  return rows;
}

/** Its last attempt beside its name; earlier ones in lines of their own before it. */
function rowsOfInvocation(invocation: InvocationTrace, branch: string): Row[] {
  const name = shorten(invocation.function, NAME_CHARS_MAX);
  const { attempts } = invocation;
  if (attempts.length <= 1) return [{ label: `${branch}${name}`, attempt: attempts[0], invocation }];
  return attempts.map((attempt) => ({ label: `${branch}${name} #${attempt.n}`, attempt, invocation }));
}

function firstMs({ attempts }: InvocationTrace): number {
  const first = attempts[0];
  return first === undefined ? Number.POSITIVE_INFINITY : isoMs(first.queuedAt);
}

function spanOf(rows: readonly Row[]): [number, number] {
  let start = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  for (const { attempt } of rows) {
    if (attempt === undefined) continue;
    start = Math.min(start, isoMs(attempt.queuedAt));
    end = Math.max(end, isoMs(attempt.endedAt ?? attempt.startedAt ?? attempt.queuedAt));
  }
  return Number.isFinite(start) ? [start, end] : [0, 0];
}

/** `·` queued, `█` ran; a runner that has not ended is drawn to the edge. */
function bar(attempt: AttemptTrace, startMs: number, endMs: number, chars: number): string {
  const span = Math.max(endMs - startMs, 0.001);
  const at = (iso: string | null, otherwise: number) =>
    Math.max(0, Math.min(chars, ((iso === null ? otherwise : isoMs(iso)) - startMs) / span) * chars);
  const queued = Math.min(chars - 1, Math.floor(at(attempt.queuedAt, startMs)));
  const started = Math.min(chars - 1, Math.max(queued, Math.floor(at(attempt.startedAt, endMs))));
  const ended = Math.max(started + 1, Math.round(at(attempt.endedAt, endMs)));
  return `${' '.repeat(queued)}${'·'.repeat(started - queued)}${'█'.repeat(ended - started)}`;
}

function queuedText(attempt: AttemptTrace | undefined): string {
  if (attempt === undefined || attempt.startedAt === null) return '';
  return duration(Math.max(0, isoMs(attempt.startedAt) - isoMs(attempt.queuedAt)));
}

function ranText(attempt: AttemptTrace | undefined): string {
  if (attempt === undefined || attempt.endedAt === null) return '';
  return duration(Math.max(0, isoMs(attempt.endedAt) - isoMs(attempt.startedAt)));
}

function outcomeText({ attempt }: Row): string {
  if (attempt === undefined) return 'waiting';
  return attempt.outcome === 'ok' ? 'ok' : printable(attempt.outcome);
}

function startColor(start: StartKind | undefined): Color | undefined {
  return start === 'cold' ? 'yellow' : undefined;
}

function outcomeColor(outcome: AttemptOutcome | undefined): Color | undefined {
  switch (outcome) {
    case undefined:
    case 'ok':
      return 'green';
    case 'running':
      return 'blue';
    case 'error':
    case 'timeout':
    case 'lost':
      return 'red';
    case 'fenced':
    case 'cancelled':
      return 'yellow';
    default:
      return unreachable(outcome, 'AttemptOutcome');
  }
}
