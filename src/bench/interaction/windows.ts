// The end of a window to the first line of the function that gets its objects.

import { PlatformError } from '../../base/index.ts';
import { type Metric, metricOf } from '../report.ts';
import type { Window, WindowOrder } from './app.ts';
import { type InteractionRun, inTurn } from './run.ts';

/** Each window is long enough for its objects to arrive in. */
const ORDERS: readonly WindowOrder[] = [
  { objects: 10, windowMs: 100 },
  { objects: 100, windowMs: 100 },
  { objects: 1_000, windowMs: 500 },
  { objects: 10_000, windowMs: 2_000 },
];
/** Windows of one turn that may end before all objects are there. */
const LATE_MAX = 20;

export async function measureWindows({ server, quick, signal }: InteractionRun): Promise<Metric[]> {
  const nameOf = ({ objects }: WindowOrder) => `window-handover-${objects}`;
  const perTurn = ({ windowMs }: WindowOrder) => (quick ? 1 : windowMs > 1_000 ? 3 : 10);
  const samples = await inTurn(
    quick ? 1 : 4,
    signal,
    ORDERS.map((order) => async () => {
      const delaysUs: number[] = [];
      for (let late = 0; delaysUs.length < perTurn(order); ) {
        signal.throwIfAborted();
        const { delayUs, objects } = (await server.invoke<Window>('window', order)).value;
        if (objects === order.objects) delaysUs.push(delayUs);
        else if (++late > LATE_MAX) {
          throw new PlatformError(
            'E_INTERNAL',
            `only ${objects} of ${order.objects} objects came within a window of ${order.windowMs} ms`,
          );
        }
      }
      return { [nameOf(order)]: delaysUs };
    }),
  );
  return ORDERS.map((order) => metricOf(nameOf(order), 'µs', samples(nameOf(order))));
}
