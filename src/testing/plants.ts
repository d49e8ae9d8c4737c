// Bugs that are planted on purpose, to see that each checker finds what it is there for.
//
// A plant changes a simulated port, or wraps a machine, for one run. Nothing in production knows of it.

import { findInvocation, type SessionEvent, SessionMachine } from '../scheduler/local/index.ts';
import type { Violation } from './evidence.ts';
import type { SimMachine } from './machine.ts';

export interface Plant {
  readonly name: string;
  /** Which checker must find it. */
  readonly checker: Violation['checker'];
  /** @returns how to take it out again, if it reaches further than the run's own machine. */
  readonly put: (machine: SimMachine) => (() => void) | undefined;
}

const nothing = undefined;

export const PLANTS: readonly Plant[] = [
  {
    name: 'answers-before-the-disk',
    checker: 'promises',
    put: ({ disk }) => {
      disk.isHasty = true;
      return nothing;
    },
  },
  {
    name: 'forgets-that-a-held-object-fired',
    checker: 'bucket-firings',
    put: ({ disk }) => {
      disk.filter = (change) => !('delete' in change && change.delete.startsWith('h/'));
      return nothing;
    },
  },
  {
    name: 'leaves-marks-of-ended-sessions',
    checker: 'remains',
    put: ({ disk }) => {
      disk.filter = (change) => !('delete' in change && change.delete.startsWith('k/'));
      return nothing;
    },
  },
  {
    name: 'gives-one-session-the-result-of-another',
    checker: 'sessions',
    put: ({ network }) => {
      let last: readonly Uint8Array[] = [];
      network.tamper = (header, blobs) => {
        const { type, result } = header as { type: string; result?: unknown };
        if (type !== 'session-ended' || result === undefined || blobs.length === 0) return blobs;
        const given = last.length > 0 && last[0]?.length === blobs[0]?.length ? last : blobs;
        last = blobs;
        return given;
      };
      return nothing;
    },
  },
  {
    name: 'loses-an-acknowledgement',
    checker: 'liveness',
    put: ({ network }) => {
      let count = 0;
      network.tamper = (header, blobs) =>
        (header as { type: string }).type === 'object-ack' && ++count % 20 === 0 ? undefined : blobs;
      return nothing;
    },
  },
  {
    name: 'counts-what-an-overtaken-attempt-sends',
    checker: 'attempts',
    put: () =>
      wrapSessionMachine((machine, event) => {
        if (event.type !== 'object-sent') return event;
        const session = machine.sessionByNo(event.sessionNo);
        const invocation = session === undefined ? undefined : findInvocation(session, event.id);
        return invocation === undefined ? event : { ...event, fence: invocation.fence };
      }),
  },
  {
    name: 'shows-an-object-to-nobody',
    checker: 'session-firings',
    put: () => {
      let count = 0;
      return wrapSessionMachine((_machine, event) =>
        event.type === 'object-sent' && event.firings === undefined && ++count % 10 === 0
          ? { ...event, object: { ...event.object, bucket: 0 } }
          : event,
      );
    },
  },
  {
    name: 'miscounts-what-runs',
    checker: 'invariants',
    put: () => {
      let count = 0;
      return wrapSessionMachine((machine, event) => {
        const session = event.type === 'attempt-started' ? machine.sessionByNo(event.sessionNo) : undefined;
        if (session !== undefined && ++count % 30 === 0) session.running++;
        return event;
      });
    },
  },
];

/** The machine gets what `change` makes of each event. */
function wrapSessionMachine(change: (machine: SessionMachine, event: SessionEvent) => SessionEvent): () => void {
  const original = SessionMachine.prototype.handle;
  SessionMachine.prototype.handle = function handle(event, now) {
    return original.call(this, change(this, event), now);
  };
  return () => {
    SessionMachine.prototype.handle = original;
  };
}
