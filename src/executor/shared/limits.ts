import { assert, KIB, MIB } from '../../base/index.ts';

/** Instances of one app host, all pools together: one word of claim state names its owner in 8 bits. */
export const INSTANCE_SLOTS_MAX = 64;
/** Offers that wait in shared memory at once, per pool; what does not fit waits in the host's queue. */
export const TICKET_SLOTS = 64;
/** An offer with one step more goes before those made up to so many offers earlier: as many as there are slots. */
export const OFFER_STEP = TICKET_SLOTS;
/** Steps by priority, up or down. */
export const OFFER_STEPS_MAX = 100;
/** Room for one offer's text and small inputs; a larger one lies in the object store and is named here. */
export const TICKET_BYTES = 4 * KIB;
/** What an instance may have told and the host not yet read. A record is at most a quarter of it. */
export const EVENT_RING_BYTES = MIB;
export const EVENT_RECORD_BYTES_MAX = EVENT_RING_BYTES / 4;
/** Objects up to this ride inside messages; larger ones lie in the object store. */
export const INLINE_BYTES_MAX = 16 * KIB;
/** Names of one `ctx.join` that ride in its record, by their characters; more lie in the object store until it is read. */
export const JOIN_INLINE_CHARS_MAX = 8 * KIB;
/** Numbers of sessions that an instance may use before it asks for more. */
export const LANE_SESSIONS = 1 << 20;
/** How long an instance waits for the host to read its full ring before it looks again. */
export const RING_FULL_WAIT_MS = 20;

assert(INLINE_BYTES_MAX * 4 <= EVENT_RECORD_BYTES_MAX, 'a record holds an inline object with its names');
// As JSON a character is six at most, each of three bytes at most.
assert(JOIN_INLINE_CHARS_MAX * 18 < EVENT_RECORD_BYTES_MAX, 'a record holds such a join');
assert((EVENT_RING_BYTES & (EVENT_RING_BYTES - 1)) === 0, 'the ring is a power of two');
