// Goal: trucks leave when the sum says so, whoever else loads, and each parcel leaves once. Method: a real server; the
// trucks of an order are worked out here; those of the depot are weighed and their parcels counted. The class itself is
// checked with the kit, as its author would.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'antrail/client';
import { checkTrigger, type ExpectedFiring, type TriggerStory } from 'antrail/testing';
import { TRUCK_KG, type Truck } from '../../examples/custom-trigger/app.ts';
import { FullTruck, type Parcel, type TruckOptions } from '../../examples/custom-trigger/full-truck.ts';
import { randomOf } from '../../examples/random.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/custom-trigger/app.ts');
});
after(() => server?.close());

const client = () =>
  connect<typeof import('../../examples/custom-trigger/app.ts').default>({ app: 'custom-trigger', url: server.url });

function parcelsOf(seed: number, count: number): Parcel[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, i) => ({ id: `${seed}-${i}`, kg: 1 + (random() % 600) }));
}

/** Those that leave; what is left is the rest. */
function trucksOf(parcels: readonly Parcel[]): { trucks: Truck[]; rest: string[] } {
  const trucks: Truck[] = [];
  let from = 0;
  let kg = 0;
  parcels.forEach((parcel, i) => {
    kg += parcel.kg;
    if (kg <= TRUCK_KG) return;
    trucks.push({ kg, parcels: parcels.slice(from, i + 1).map(({ id }) => id) });
    [from, kg] = [i + 1, 0];
  });
  return { trucks, rest: parcels.slice(from).map(({ id }) => id) };
}

describe('an order', () => {
  test('leaves in trucks of its own, whatever is ordered at the same time', async () => {
    const orders = Array.from({ length: 25 }, (_, seed) => parcelsOf(seed, 10 + seed * 4));
    await Promise.all(
      orders.map(async (parcels) => {
        const { trucks, rest } = trucksOf(parcels);
        const handle = await client().start('order', parcels);
        const outputs: Truck[] = [];
        for await (const { value } of handle.outputs<Truck>()) outputs.push(value);
        const byFirst = (all: readonly Truck[]) =>
          [...all].sort((a, b) => (String(a.parcels[0]) < String(b.parcels[0]) ? -1 : 1));
        assert.deepEqual(byFirst(outputs), byFirst(trucks));
        let record = await handle.info();
        while (record.state === 'running') record = await handle.info();
        assert.equal(record.state, 'completed');
        assert.equal(record.unfired[0]?.held ?? 0, rest.length);
      }),
    );
  });
});

describe('the depot', () => {
  test('loads everybody’s parcels: each leaves once, with a full truck or when it has waited', async () => {
    const lots = Array.from({ length: 30 }, (_, i) => parcelsOf(1_000 + i, 8));
    const kgOf = new Map(lots.flat().map(({ id, kg }) => [id, kg]));
    await Promise.all(lots.map(async (parcels) => (await client().start('drop', parcels)).result()));
    const trucks = await left(kgOf.size);
    const parcels = trucks.flatMap((truck) => truck.parcels);
    assert.deepEqual([...parcels].sort(), [...kgOf.keys()].sort());
    for (const truck of trucks) {
      const kg = truck.parcels.map((id) => kgOf.get(id) ?? 0);
      assert.equal(truck.kg, sum(kg));
      assert.ok(sum(kg.slice(0, -1)) <= TRUCK_KG, 'it left with the parcel that made it full, no later');
    }
    const notFull = trucks.filter(({ kg }) => kg <= TRUCK_KG);
    assert.ok(notFull.length < trucks.length, 'most leave full');
  });

  /** The depot's trucks, when they have taken so many parcels. */
  async function left(count: number): Promise<Truck[]> {
    const trucks = new Map<string, Truck>();
    for (;;) {
      const { sessions } = await server.client.sessions({ app: 'custom-trigger', limit: 1_000 });
      for (const { session, function: name, state } of sessions) {
        if (name !== 'drive' || state === 'running' || trucks.has(session)) continue;
        for await (const { value } of client().handle(session).outputs<Truck>()) trucks.set(session, value);
      }
      const all = [...trucks.values()];
      if (sum(all.map(({ parcels }) => parcels.length)) >= count) return all;
    }
  }
});

describe('the class', () => {
  /** The same another way: looks at all parcels since the last truck, each time. */
  function reference({ events, endMs }: TriggerStory<Parcel>, { kg, waitMs }: TruckOptions): ExpectedFiring[] {
    const firings: ExpectedFiring[] = [];
    let loaded: { id: string; kg: number; atMs: number }[] = [];
    const leave = (when: boolean) => {
      if (!when || loaded.length === 0) return;
      firings.push({ objects: loaded.map(({ id }) => id) });
      loaded = [];
    };
    const hasWaited = (nowMs: number) => waitMs !== undefined && (loaded[0]?.atMs ?? nowMs) + waitMs <= nowMs;
    for (const event of events) {
      if (event.type !== 'object') continue;
      leave(hasWaited(event.atMs));
      loaded.push({ id: event.object.id, kg: event.object.value.kg, atMs: event.atMs });
      leave(sum(loaded.map((one) => one.kg)) > kg);
    }
    leave(hasWaited(endMs));
    return firings;
  }

  for (const [scope, options] of [
    ['session', { kg: TRUCK_KG }],
    ['bucket', { kg: TRUCK_KG, waitMs: 250 }],
  ] as const) {
    test(`keeps the rules of triggers, and fires as worked out (${scope} scope)`, () => {
      checkTrigger<TruckOptions, Parcel>(FullTruck, {
        scope,
        options,
        object: (random, n) => ({ value: { id: `p${n}`, kg: random.int(1, 600) } }),
        reference,
      });
    });
  }
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
