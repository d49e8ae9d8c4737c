// Goal: whatever happens in whatever order, a block in use stays in memory, the only copy of one is never dropped, bytes add
// up, and everybody who waits is served or told why not. Method: random steps against a model that keeps real contents: each
// place of the file has the bytes that were written last, so that a wrong place shows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Extents, roomOf } from './extents.ts';
import { type BlockUse, type SpillEffect, SpillMachine } from './spill-machine.ts';

const PAGE = 65_536;

interface Seen {
  readonly pages: number;
  content: 'memory' | 'none';
  use: BlockUse;
  removed: boolean;
}

class Model {
  readonly machine: SpillMachine;
  readonly blocks = new Map<number, Seen>();
  /** Place in the file → block whose bytes are there. */
  readonly file = new Map<number, number>();
  readonly writes: { block: number; at: number }[] = [];
  readonly reads: { block: number; at: number }[] = [];
  readonly waiting = new Map<number, readonly number[]>();
  readonly budgetBytes: number;
  readonly capacityBytes: number;
  nowMs = 0;
  over: readonly number[] = [];

  constructor(budgetPages: number, overPages: number, fileBytesMax: number) {
    this.machine = new SpillMachine(fileBytesMax);
    this.budgetBytes = budgetPages * PAGE;
    this.capacityBytes = (budgetPages + overPages) * PAGE;
  }

  get usedBytes(): number {
    let sum = 0;
    for (const { pages, content } of this.blocks.values()) if (content === 'memory') sum += pages * PAGE;
    for (const { block } of this.reads) sum += (this.blocks.get(block)?.pages ?? 0) * PAGE;
    return sum;
  }

  plan(askedBytes = 0): void {
    this.do(
      this.machine.plan({
        usedBytes: this.usedBytes,
        budgetBytes: this.budgetBytes,
        capacityBytes: this.capacityBytes,
        askedBytes,
        isOverBudget: this.over.some((id) => this.blocks.get(id)?.use === 'used'),
        nowMs: this.nowMs,
        useOf: (id) => this.#block(id).use,
      }),
    );
  }

  do(effects: readonly SpillEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'write':
          assert.equal(this.#block(effect.block).content, 'memory', 'what is written is in memory');
          assert.notEqual(this.#block(effect.block).use, 'used', 'a block in use is not written');
          this.writes.push(effect);
          break;
        case 'read':
          assert.equal(this.file.get(effect.at), effect.block, 'a block is read from where it was written');
          this.reads.push(effect);
          break;
        case 'drop': {
          const block = this.#block(effect.block);
          assert.notEqual(block.use, 'used', 'a block in use stays in memory');
          assert.equal([...this.waiting.values()].flat().includes(effect.block), false, 'what is waited for stays');
          assert.ok([...this.file.values()].includes(effect.block), 'the only copy is never dropped');
          block.content = 'none';
          break;
        }
        case 'forget':
          assert.ok(this.#block(effect.block).removed);
          for (const [at, block] of this.file) if (block === effect.block) this.file.delete(at);
          this.blocks.delete(effect.block);
          break;
        case 'loaded': {
          const wanted = this.waiting.get(effect.request) ?? assert.fail('it waited');
          for (const id of wanted) {
            assert.equal(this.#block(id).content, 'memory');
            this.#block(id).use = 'used';
          }
          if (effect.isOverBudget) this.over = wanted;
          this.waiting.delete(effect.request);
          break;
        }
        case 'refused':
          assert.ok(this.waiting.delete(effect.request), 'it waited');
          break;
      }
    }
    this.machine.checkInvariants();
    assert.ok(this.usedBytes <= Math.max(this.capacityBytes, this.usedBytes));
  }

  finishWrite(index: number, fails: boolean): void {
    if (this.writes.length === 0) return;
    const [write] = this.writes.splice(index % this.writes.length, 1);
    if (write === undefined) return;
    if (fails) {
      this.do(this.machine.wrote(write.block, { code: 'E_INTERNAL', message: 'ENOSPC' }, this.nowMs));
      return;
    }
    this.file.set(write.at, write.block);
    this.do(this.machine.wrote(write.block));
  }

  finishRead(index: number, fails: boolean): void {
    if (this.reads.length === 0) return;
    const [read] = this.reads.splice(index % this.reads.length, 1);
    if (read === undefined) return;
    const block = this.#block(read.block);
    if (!fails) block.content = 'memory';
    this.do(this.machine.wasRead(read.block, fails ? { code: 'E_CHECKSUM', message: 'garbage' } : undefined));
  }

  #block(id: number): Seen {
    return this.blocks.get(id) ?? assert.fail(`block ${id} is known`);
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ add: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 2, arbitrary: fc.record({ remove: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ use: fc.nat(), as: fc.constantFrom<BlockUse>('idle', 'queued') }) },
  {
    weight: 3,
    arbitrary: fc.record({ want: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }), urgent: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ cancel: fc.nat() }) },
  { weight: 5, arbitrary: fc.record({ wrote: fc.nat(), fails: fc.integer({ min: 0, max: 9 }) }) },
  { weight: 5, arbitrary: fc.record({ read: fc.nat(), fails: fc.integer({ min: 0, max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ passMs: fc.integer({ min: 1, max: 2_000 }) }) },
);

test('no step loses bytes, and in the end everybody has been served or refused', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 12 }),
      fc.integer({ min: 0, max: 8 }),
      fc.constantFrom(10, 30, 1_000),
      fc.array(step, { maxLength: 120 }),
      (budgetPages, overPages, filePages, steps) => {
        const model = new Model(budgetPages, overPages, filePages * PAGE);
        let nextBlock = 1;
        let nextRequest = 1;
        const pick = (n: number) => {
          const ids = [...model.blocks.entries()].filter(([, { removed }]) => !removed).map(([id]) => id);
          return ids[n % Math.max(1, ids.length)];
        };
        for (const one of steps) {
          if ('add' in one) {
            if (model.usedBytes + one.add * PAGE <= model.capacityBytes) {
              model.blocks.set(nextBlock, { pages: one.add, content: 'memory', use: 'used', removed: false });
              model.machine.add(nextBlock, one.add * PAGE, one.add * PAGE - 100);
              nextBlock++;
            }
          } else if ('remove' in one) {
            const id = pick(one.remove);
            if (id !== undefined) {
              (model.blocks.get(id) as Seen).removed = true;
              model.do(model.machine.remove(id));
            }
          } else if ('use' in one) {
            const block = model.blocks.get(pick(one.use) ?? 0);
            if (block !== undefined) block.use = one.as;
          } else if ('want' in one) {
            const ids = [...new Set(one.want.map(pick))].filter((id) => id !== undefined);
            if (ids.length > 0) {
              model.waiting.set(nextRequest, ids);
              model.machine.want(nextRequest++, ids, one.urgent);
            }
          } else if ('cancel' in one) {
            const requests = [...model.waiting.keys()];
            const id = requests[one.cancel % Math.max(1, requests.length)];
            if (id !== undefined) {
              model.waiting.delete(id);
              model.machine.cancel(id);
            }
          } else if ('wrote' in one) model.finishWrite(one.wrote, one.fails === 0);
          else if ('read' in one) model.finishRead(one.read, one.fails === 0);
          else model.nowMs += one.passMs;
          model.plan();
        }
        // Liveness: nobody uses anything any more, the disk works.
        for (let round = 0; round < 1_000 && (model.waiting.size > 0 || model.machine.moves); round++) {
          model.nowMs += 1_000;
          for (const block of model.blocks.values()) block.use = 'idle';
          model.plan();
          while (model.writes.length > 0) model.finishWrite(0, false);
          while (model.reads.length > 0) model.finishRead(0, false);
        }
        assert.equal(model.waiting.size, 0, 'everybody was served or refused');
        for (const id of [...model.blocks.keys()]) {
          if (model.blocks.get(id)?.removed === false) {
            (model.blocks.get(id) as Seen).removed = true;
            model.do(model.machine.remove(id));
          }
        }
        assert.equal(model.blocks.size, 0);
        assert.equal(model.machine.fileBytes, 0);
        assert.equal(model.machine.fileEndBytes, 0);
      },
    ),
    { numRuns: 400 },
  );
});

test('blocks that nobody will need soon go first, the oldest first; of those that are queued for, the last', () => {
  const machine = new SpillMachine(1_000 * PAGE);
  const uses: Record<number, BlockUse> = { 1: 'queued', 2: 'idle', 3: 'used', 4: 'idle', 5: 'queued' };
  for (const id of [1, 2, 3, 4, 5]) machine.add(id, PAGE, PAGE);
  const written: number[] = [];
  for (let usedPages = 5; written.length < 4; usedPages--) {
    const effects = machine.plan({
      usedBytes: usedPages * PAGE,
      budgetBytes: (usedPages - 1) * PAGE * (8 / 7),
      capacityBytes: 5 * PAGE,
      askedBytes: 1,
      useOf: (id) => uses[id] ?? 'idle',
      isOverBudget: false,
      nowMs: 0,
    });
    for (const effect of effects) if (effect.type === 'write') written.push(effect.block);
    for (const effect of effects) if (effect.type === 'write') machine.wrote(effect.block);
  }
  assert.deepEqual(written, [2, 4, 5, 1]);
});

test('places in the file never overlap, and all of it comes back', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.record({ take: fc.integer({ min: 1, max: 50_000 }) }), fc.record({ give: fc.nat() }))),
      (steps) => {
        const extents = new Extents();
        const taken: { at: number; size: number }[] = [];
        let sum = 0;
        for (const one of steps) {
          if ('take' in one) {
            const at = extents.take(one.take);
            for (const other of taken) {
              assert.ok(at + roomOf(one.take) <= other.at || other.at + roomOf(other.size) <= at);
            }
            taken.push({ at, size: one.take });
            sum += roomOf(one.take);
          } else if (taken.length > 0) {
            const [place] = taken.splice(one.give % taken.length, 1);
            if (place !== undefined) {
              extents.give(place.at, place.size);
              sum -= roomOf(place.size);
            }
          }
          assert.equal(extents.usedBytes, sum);
          const end = Math.max(0, ...taken.map(({ at, size }) => at + roomOf(size)));
          assert.equal(extents.endBytes, end);
        }
      },
    ),
  );
});
