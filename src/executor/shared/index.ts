export { Bells, createBells, HOST_BELL } from './bells.ts';
export { ByteReader, ByteWriter } from './bytes.ts';
export { createEventRing, EventRingReader, EventRingWriter } from './event-ring.ts';
export { entryId, firingId, objectFiringId } from './firing-id.ts';
export type { HostToInstance, InstanceBoot, InstanceToHost } from './instance-messages.ts';
export {
  EVENT_RECORD_BYTES_MAX,
  INLINE_BYTES_MAX,
  INSTANCE_SLOTS_MAX,
  TICKET_BYTES,
  TICKET_SLOTS,
} from './limits.ts';
export {
  CALL_TRIGGER,
  type EventRecord,
  type InlineFiring,
  type Note,
  readRecord,
  type SentRecord,
  type Speaker,
  START_KINDS,
  writeEnded,
  writeHandedOver,
  writeNote,
  writeSent,
  writeStarted,
} from './records.ts';
export {
  type AppTables,
  type BucketRow,
  buildTables,
  CALL_BUCKET_INDEX,
  type FunctionRow,
  INPUT_BUCKET_INDEX,
  MEMORY_MB_DEFAULT,
  OUTPUT_BUCKET_INDEX,
  TIMEOUT_MS_DEFAULT,
  type TriggerRow,
  type TriggersByBucket,
} from './tables.ts';
export { readTicket, type Ticket, ticketBytesMax, writeTicket } from './ticket-body.ts';
export { createTicketMemory, type TicketBlock, type TicketKey, Tickets } from './tickets.ts';
export {
  isSlabRef,
  nameOf,
  objectBytesMax,
  readObject,
  sizeOf,
  type WireContent,
  type WireObject,
  writeObject,
} from './wire-object.ts';
