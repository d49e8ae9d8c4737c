// Bucket-scoped triggers, driven: objects in, sessions out.
//
// Owns: timers of the triggers, what is on disk of what they hold, the sessions that firings start.
// Does not own: the triggers (BucketTriggers), those sessions from then on (Coordinator).
//
// CO3. Objects that a firing takes and the start of its session go to disk in one transaction.

import { type ErrorData, type MonotonicMs, PlatformError } from '../../base/index.ts';
import type { CancelTimer } from '../../platform/index.ts';
import type { EvaluationResult } from '../../protocol/index.ts';
import { type CustomMachine, functionsOf } from '../../trigger/index.ts';
import { BucketEvaluations } from './bucket-evaluations.ts';
import { BucketTriggers, type BucketTriggersEffect, type HeldObject, type Placement } from './bucket-triggers.ts';
import type { Coordinator } from './coordinator.ts';
import { CAUSES_MAX } from './limits.ts';
import type { RecordChange } from './record-store.ts';
import type { Session, StoredObject } from './session.ts';
import { keys, sessionChange } from './session-codec.ts';
import type { SessionWrites } from './session-writes.ts';

export class Firings {
  readonly triggers = new BucketTriggers();
  readonly #coordinator: Coordinator;
  readonly #writes: SessionWrites;
  readonly evaluations: BucketEvaluations;
  readonly #timers = new Map<Placement, CancelTimer>();

  constructor(coordinator: Coordinator, writes: SessionWrites) {
    this.#coordinator = coordinator;
    this.#writes = writes;
    this.evaluations = new BucketEvaluations(coordinator, ({ placement, machine, plan }, result) =>
      this.#evaluated(placement, machine, plan.id, result),
    );
  }

  /**
   * Gives an object to the bucket-scoped triggers of its bucket.
   * @returns a promise when it has to become durable first. @throws the trigger's refusal.
   */
  take(producer: Session, version: string, object: StoredObject, durable: boolean): Promise<void> | undefined {
    const { app } = producer.spec;
    const effects: BucketTriggersEffect[] = [];
    const result = this.triggers.take({ app, version, object, durable }, this.#coordinator.now(), effects);
    if (result.type === 'refused') {
      this.#writes.supervise(this.fire(effects), 'a firing');
      const { message, details, code } = result.error;
      throw new PlatformError(code, message, details === undefined ? {} : { details });
    }
    if (result.type === 'duplicate') return this.#writes.pending(producer.id);
    const changes: RecordChange[] = [];
    if (durable && producer.spec.durable && result.type === 'taken') {
      const { session, bucket, name } = object.header;
      changes.push({ put: keys.taken(app, session, bucket, name), header: null });
      producer.marked = true;
    }
    const written = this.fire(effects, changes);
    // A repeat by a second execution is acknowledged no earlier than the first.
    if (written !== undefined) this.#writes.remember(producer.id, written);
    return written;
  }

  /** No more objects come into the bucket's groups. */
  closeGroup(app: string, version: string, bucket: string): void {
    const effects: BucketTriggersEffect[] = [];
    this.triggers.close(app, bucket, version, this.#coordinator.now(), effects);
    this.#writes.supervise(this.fire(effects), 'a firing');
  }

  /** The app has another current version or other triggers. */
  configure(app: string): void {
    const current = this.#coordinator.ports.apps.current(app);
    if (current === undefined) return;
    const effects: BucketTriggersEffect[] = [];
    this.triggers.configure(app, current.version, current.manifest.buckets, this.#coordinator.now(), effects);
    this.#writes.supervise(this.fire(effects), 'a moved trigger');
    for (const version of new Set(effects.map(({ placement }) => placement.version))) {
      this.#coordinator.releaseIfUnused(app, version);
    }
  }

  /** Removes one trigger at run time. */
  remove(app: string, bucket: string, trigger: string): void {
    const effects: BucketTriggersEffect[] = [];
    this.triggers.remove(app, bucket, trigger, effects);
    this.#writes.supervise(this.fire(effects), 'a removed trigger');
  }

  /** All triggers of the app; what they hold is freed. */
  removeApp(app: string): void {
    const effects: BucketTriggersEffect[] = [];
    this.triggers.removeApp(app, effects);
    this.#writes.supervise(this.fire(effects), 'removed triggers');
  }

  /** No session of this version runs, and it is not the current one: what drains under it fires its rest. */
  versionUnused(app: string, version: string): void {
    const effects: BucketTriggersEffect[] = [];
    this.triggers.versionUnused(app, version, this.#coordinator.now(), effects);
    this.#writes.supervise(this.fire(effects), 'a drained trigger');
  }

  /** A class has decided, or could not. */
  #evaluated(placement: Placement, machine: CustomMachine, id: number, result: EvaluationResult): void {
    const { app, version } = placement;
    const effects: BucketTriggersEffect[] = [];
    this.triggers.evaluated(app, machine, id, result, this.#coordinator.now(), effects);
    this.#writes.supervise(this.fire(effects), 'a firing');
    // What drained may have been all that its version was kept for.
    this.#coordinator.releaseIfUnused(app, version);
  }

  /** Timers stand still from now on. */
  stop(): void {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  /**
   * Does what the triggers decided; `changes` go into the same transaction (CO3).
   * @returns a promise when something had to be written.
   */
  fire(effects: readonly BucketTriggersEffect[], changes: RecordChange[] = []): Promise<void> | undefined {
    const starts: Session[] = [];
    const touched = new Set<Placement>();
    const decided = new Set<Placement>();
    let lettersChanged = false;
    for (const effect of effects) {
      const { placement } = effect;
      const { app, bucket, trigger } = placement;
      switch (effect.type) {
        case 'held':
          if (effect.held.durable) {
            changes.push(heldChange(placement, effect.held));
            touched.add(placement);
          }
          break;
        case 'placed':
          for (const held of effect.objects) if (held.durable) changes.push(heldChange(placement, held));
          // What drains leaves the place of its snapshot to the trigger that follows it.
          if (placement.draining && hasSnapshot(placement))
            changes.push({ delete: keys.snapshot(app, bucket, trigger) });
          break;
        case 'dropped':
          for (const held of effect.objects) {
            if (held.durable) changes.push({ delete: keys.held(app, bucket, trigger, held.seq) });
          }
          touched.add(placement);
          break;
        case 'fire': {
          const session = this.#firingSession(placement, effect.index, effect.objects, effect.run);
          if (session.spec.durable) {
            for (const held of effect.objects) changes.push({ delete: keys.held(app, bucket, trigger, held.seq) });
            changes.push(sessionChange(session));
          }
          touched.add(placement);
          starts.push(session);
          break;
        }
        case 'evaluate':
          this.evaluations.ask(effect);
          break;
        case 'decided':
          decided.add(placement);
          break;
        case 'gave-up':
          changes.push(...this.#letterOf(placement, effect.error, effect.object));
          lettersChanged = true;
          break;
        case 'set-timer':
          this.#setTriggerTimer(placement, effect.atMs);
          break;
        case 'removed':
          if (hasSnapshot(placement) && !placement.draining) {
            changes.push({ delete: keys.snapshot(app, bucket, trigger) });
          }
          this.evaluations.forget(app, ({ machine }) => !this.triggers.has(app, machine));
          break;
      }
    }
    for (const placement of new Set([...touched, ...decided])) {
      if (!hasSnapshot(placement) || placement.draining) continue;
      // A class's state changes with its decisions only.
      if (!decided.has(placement) && (changes.length === 0 || placement.spec.kind === 'custom')) continue;
      const snapshot = this.triggers.snapshotOf(placement, this.#coordinator.now());
      if (snapshot === undefined) continue;
      changes.push({ put: keys.snapshot(placement.app, placement.bucket, placement.trigger), header: snapshot });
    }
    const written = changes.length === 0 ? undefined : this.#coordinator.ports.records.write(changes);
    if (lettersChanged && written !== undefined) this.#coordinator.letters.follow(written);
    for (const session of starts) {
      this.#coordinator.counters.firings++;
      if (session.spec.durable && written !== undefined) this.#writes.remember(session.id, written);
      this.#coordinator.accept(session);
    }
    return written;
  }

  #firingSession(
    placement: Placement,
    index: string,
    objects: readonly HeldObject[],
    run: readonly string[] | undefined,
  ): Session {
    const { app, version, bucket, trigger, spec, path } = placement;
    const causes = new Set<string>();
    for (const { object } of objects) causes.add(object.header.session);
    const durable = objects.length > 0 && objects.every((held) => held.durable);
    const inputs = objects.map(({ object }) => object);
    const consumes = durable
      ? []
      : objects.filter((held) => held.durable).map((held) => keys.held(app, bucket, trigger, held.seq));
    return this.#coordinator.create({
      app,
      version,
      entries: functionsOf(spec)
        .filter((name) => run?.includes(name) !== false)
        .map((name) => ({ function: name, inputs })),
      durable,
      detached: true,
      priority: 0,
      tags: {},
      causes: [...causes].slice(0, CAUSES_MAX),
      ...(causes.size > CAUSES_MAX ? { causesCount: causes.size } : {}),
      firing: `${path}/${index}`,
      ...(consumes.length > 0 ? { consumes } : {}),
    });
  }

  #letterOf(
    { app, version, bucket, trigger, path }: Placement,
    error: ErrorData,
    held: HeldObject | undefined,
  ): RecordChange[] {
    const header = held?.object.header;
    const what = header === undefined ? '' : ` object ${header.name} of`;
    return this.#coordinator.letters.changesOfTrigger({
      id:
        held === undefined
          ? `${app}.${version}.${bucket}.${trigger}`
          : `${held.object.header.session}.${trigger}.${held.seq}`,
      app,
      version,
      session: header?.session ?? '',
      path,
      error: { ...error, message: `trigger ${trigger} gave up${what} bucket ${bucket}: ${error.message}` },
      atMs: this.#coordinator.ports.clock.epochMs(),
    });
  }

  #setTriggerTimer(placement: Placement, atMs: number | undefined): void {
    this.#timers.get(placement)?.();
    this.#timers.delete(placement);
    if (atMs === undefined || this.#coordinator.closed) return;
    const cancel = this.#coordinator.ports.timers.set(atMs as MonotonicMs, () => {
      this.#timers.delete(placement);
      const effects: BucketTriggersEffect[] = [];
      this.triggers.timerFired(placement, this.#coordinator.now(), effects);
      this.#writes.supervise(this.fire(effects), 'a firing');
    });
    this.#timers.set(placement, cancel);
  }
}

/** Kinds whose state is more than the objects that they hold. */
function hasSnapshot(placement: Placement): boolean {
  const { kind } = placement.spec;
  return kind === 'redundant' || kind === 'dynamicGroup' || kind === 'custom';
}

function heldChange(placement: Placement, held: { seq: number; object: StoredObject }): RecordChange {
  const { app, version, bucket, trigger, spec, draining } = placement;
  return {
    put: keys.held(app, bucket, trigger, held.seq),
    header: { seq: held.seq, object: held.object.header, version, spec, draining },
    blobs: [held.object.bytes],
  };
}
