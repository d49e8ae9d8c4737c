// From a spec, and maybe a snapshot, to its machine.

import { unreachable } from '../base/index.ts';
import { ByBatchSizeMachine } from './by-batch-size.ts';
import { ByTimeMachine } from './by-time.ts';
import { CustomMachine } from './custom.ts';
import { DynamicGroupMachine } from './dynamic-group.ts';
import type { Now, TriggerMachine } from './machine.ts';
import { BySetMachine, DynamicJoinMachine } from './named-sets.ts';
import { PerObjectMachine } from './per-object.ts';
import { createRedundant, restoreRedundant } from './redundant.ts';
import type { TriggerSpec } from './spec.ts';

/** @param spec one that `checkTrigger` finds nothing wrong with. @param now when the windows of a byTime, and the time of a custom one, begin. */
export function createTrigger(spec: TriggerSpec, now: Now): TriggerMachine {
  switch (spec.kind) {
    case 'immediate':
    case 'byName':
      return new PerObjectMachine(spec);
    case 'bySet':
      return new BySetMachine(spec);
    case 'byBatchSize':
      return new ByBatchSizeMachine(spec);
    case 'byTime':
      return new ByTimeMachine(spec, now);
    case 'redundant':
      return createRedundant(spec);
    case 'dynamicJoin':
      return new DynamicJoinMachine(spec);
    case 'dynamicGroup':
      return new DynamicGroupMachine(spec);
    case 'custom':
      return new CustomMachine(spec, now);
    default:
      return unreachable(spec, 'createTrigger');
  }
}

/**
 * The machine that `snapshot` was taken of, under a spec of the same kind and scope; other options may have changed
 * (a redeploy): what is held then follows the new ones from the next event on.
 *
 * @param snapshot what `snapshot(now)` gave, maybe through JSON.
 * @throws E_PROTOCOL (corrupt): it is of another kind or version, or damaged.
 */
export function restoreTrigger(spec: TriggerSpec, snapshot: unknown, now: Now): TriggerMachine {
  switch (spec.kind) {
    case 'immediate':
    case 'byName':
      return PerObjectMachine.restore(spec, snapshot);
    case 'bySet':
      return BySetMachine.restore(spec, snapshot);
    case 'byBatchSize':
      return ByBatchSizeMachine.restore(spec, snapshot, now);
    case 'byTime':
      return ByTimeMachine.restore(spec, snapshot, now);
    case 'redundant':
      return restoreRedundant(spec, snapshot);
    case 'dynamicJoin':
      return DynamicJoinMachine.restore(spec, snapshot);
    case 'dynamicGroup':
      return DynamicGroupMachine.restore(spec, snapshot);
    case 'custom':
      return CustomMachine.restore(spec, snapshot, now);
    default:
      return unreachable(spec, 'restoreTrigger');
  }
}
