export { ATOMICS_WAITS, Bells, createBells, HOST_BELL, type WordWaits } from './bells.ts';
export { createEventRing, EventRingReader, EventRingWriter } from './event-ring.ts';
export type { HostToInstance, InstanceBoot, InstanceToHost } from './instance-messages.ts';
export {
  EVENT_RECORD_BYTES_MAX,
  INLINE_BYTES_MAX,
  INSTANCE_SLOTS_MAX,
  JOIN_INLINE_CHARS_MAX,
  LANE_SESSIONS,
  TICKET_BYTES,
  TICKET_SLOTS,
} from './limits.ts';
export {
  CALL_TRIGGER,
  type EndedRecord,
  type EventRecord,
  type InlineFiring,
  type LaneRecord,
  type Note,
  readRecord,
  type SentRecord,
  type Speaker,
  START_KINDS,
  writeEnded,
  writeHandedOver,
  writeLane,
  writeNote,
  writeSent,
  writeStarted,
} from './records.ts';
export { readTicket, type Ticket, ticketBytesMax, writeTicket } from './ticket-body.ts';
export {
  createTicketMemory,
  type SweptTicket,
  stepsAheadOf,
  type TicketBlock,
  type TicketKey,
  Tickets,
} from './tickets.ts';
export { withUserStack } from './user-stack.ts';
