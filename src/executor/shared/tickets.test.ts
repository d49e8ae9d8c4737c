// Goal: an offer is claimed once, oldest first, and what a dead thread left is freed. Method: two owners in one thread;
// real threads race in test/integration/tickets.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OFFER_STEP, TICKET_SLOTS } from './limits.ts';
import { createTicketMemory, Tickets } from './tickets.ts';

function offer(tickets: Tickets, n: number, functionIndex = 0, stepsAhead = 0): boolean {
  const slot = tickets.take();
  if (slot === undefined) return false;
  slot.body.writeUInt32LE(n, 0);
  tickets.publish(slot.slot, { function: functionIndex, sessionNo: 1, hi: n, lo: n, stepsAhead }, 4);
  return true;
}

function claim(tickets: Tickets, accepts = (_: number) => true): number | undefined {
  const claimed = tickets.claim(accepts);
  if (claimed === undefined) return undefined;
  const n = claimed.body.readUInt32LE(0);
  tickets.done(claimed.slot);
  return n;
}

test('the oldest offer that is accepted is claimed first', () => {
  const memory = createTicketMemory();
  const host = new Tickets(memory, 1);
  const instance = new Tickets(memory, 2);
  for (const n of [1, 2, 3]) offer(host, n, n % 2);
  assert.equal(
    claim(instance, (f) => f === 0),
    2,
  );
  assert.equal(claim(instance), 1);
  assert.equal(claim(instance), 3);
  assert.equal(claim(instance), undefined);
  assert.equal(host.readyCount, 0);
});

test('an offer that is a step ahead goes before the older ones, but not before what is older than a step', () => {
  const memory = createTicketMemory();
  const host = new Tickets(memory, 1);
  offer(host, 1);
  offer(host, 2, 0, 1);
  offer(host, 3, 0, 2);
  offer(host, 4, 0, -1);
  assert.deepEqual([claim(host), claim(host), claim(host), claim(host)], [3, 2, 1, 4]);
  offer(host, 0);
  let turns = -1;
  do {
    turns++;
    offer(host, 5, 0, 1);
  } while (claim(host) !== 0);
  assert.equal(turns, OFFER_STEP, 'a stream of higher ones overtakes it for one step');
});

test('slots are reused for ever, and a full house refuses', () => {
  const memory = createTicketMemory();
  const host = new Tickets(memory, 1);
  for (let round = 0; round < 5_000; round++) {
    assert.ok(offer(host, round));
    assert.equal(claim(host), round);
  }
  for (let i = 0; i < TICKET_SLOTS; i++) assert.ok(offer(host, i));
  assert.equal(offer(host, 99), false);
});

test('an offer that is taken back is not claimed, a claimed one is not taken back', () => {
  const memory = createTicketMemory();
  const host = new Tickets(memory, 1);
  offer(host, 5);
  assert.equal(host.withdraw(1, 5, 5), null);
  assert.equal(claim(host), undefined);
  offer(host, 6);
  const claimed = host.claim(() => true);
  assert.equal(host.withdraw(1, 6, 6), undefined);
  assert.ok(claimed !== undefined);
});

test('what a dead thread was writing or had claimed is freed; what it had offered stays', () => {
  const memory = createTicketMemory();
  const host = new Tickets(memory, 1);
  const dying = new Tickets(memory, 7);
  offer(dying, 1);
  offer(host, 2);
  offer(host, 3);
  dying.claim(() => true); // 1
  dying.claim(() => true); // 2
  dying.take();
  offer(dying, 4);
  assert.ok(host.holds(1, 4, 4, 7));
  assert.ok(!host.holds(1, 2, 2, 7), 'what the dead one claimed is nowhere');
  host.sweep(7);
  assert.deepEqual([claim(host), claim(host), claim(host)], [3, 4, undefined]);
  let free = 0;
  while (offer(host, 0)) free++;
  assert.equal(free, TICKET_SLOTS);
});
