// A trigger of one's own: a truck leaves when the parcels that wait for it weigh enough.
//
//   order ── own ────▶ drive   trucks of one order only: the trigger has a state for each session
//   drop ─── depot ──▶ drive   trucks that everybody's parcels share: one state for the bucket, and a timer for the rest
//
//   antrail invoke custom-trigger '[{"id": "a", "kg": 700}, {"id": "b", "kg": 400}, {"id": "c", "kg": 50}]'

import { app, bucket, custom, fn } from 'antrail';
import { FullTruck, type Parcel } from './full-truck.ts';

export const TRUCK_KG = 1_000;
export const DEPOT_WAIT_MS = 300;

export interface Truck {
  readonly kg: number;
  /** In the order in which they came. */
  readonly parcels: readonly string[];
}

const order = fn<Parcel[]>((ctx, [parcels]) => {
  for (const parcel of parcels.json()) ctx.send('own', parcel);
});

const drop = fn<Parcel[]>((ctx, [parcels]) => {
  for (const parcel of parcels.json()) ctx.send('depot', parcel);
});

const drive = fn<Parcel>((ctx, inputs) => {
  const parcels = inputs.map((input) => input.json<Parcel>());
  const truck: Truck = { kg: parcels.reduce((sum, { kg }) => sum + kg, 0), parcels: parcels.map(({ id }) => id) };
  ctx.output(truck);
});

export default app('custom-trigger', {
  entry: 'order',
  functions: { order, drop, drive },
  buckets: {
    own: bucket({ on: { full: custom(FullTruck, { run: 'drive', options: { kg: TRUCK_KG } }) } }),
    depot: bucket({
      on: {
        full: custom(FullTruck, {
          run: 'drive',
          scope: 'bucket',
          options: { kg: TRUCK_KG, waitMs: DEPOT_WAIT_MS },
        }),
      },
    }),
  },
});
