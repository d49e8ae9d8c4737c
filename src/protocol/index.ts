export type { DeadLetter, DeadLetterHead, DeadLetterInput, FinalFailure } from './dead-letter.ts';
export { describeUnserialisable, encodeJsonText, encodeValue, type Unserialisable } from './encode-value.ts';
export {
  type Evaluated,
  type EvaluatedFiring,
  type EvaluatedReaction,
  type Evaluation,
  type EvaluationEvent,
  type EvaluationFailure,
  type EvaluationObject,
  type EvaluationResult,
  TRIGGER_VALUE_BYTES_MAX,
} from './evaluation.ts';
export {
  encodeFrame,
  FRAME_BLOBS_MAX,
  FRAME_COPY_BYTES_MAX,
  FRAME_HEADER_BYTES_MAX,
  type Frame,
  FrameDecoder,
  type FrameDecoderOptions,
} from './frame.ts';
export {
  HOST_PROTOCOL_VERSION,
  type HostBoot,
  type HostLimits,
  type HostReply,
  type HostRequest,
  type HostStats,
  type HostToServer,
  type ServerToHost,
} from './host-messages.ts';
export {
  type AppBundle,
  type BucketSpec,
  type BundleFile,
  CALL_BUCKET,
  type FunctionKind,
  type FunctionOptionsSpec,
  type FunctionSpec,
  INPUT_BUCKET,
  type Manifest,
  OUTPUT_BUCKET,
  type RegExpSpec,
  type RerunRule,
  type RetryPolicy,
  type Runtime,
  type SourceLocation,
  type TriggerScope,
  type TriggerSpec,
} from './manifest.ts';
export type {
  ObjectRange,
  OutputEvent,
  PutObjectRequest,
  StartedSession,
  StartRequest,
  SyncOutcome,
} from './requests.ts';
export type {
  AppInfo,
  AppObjects,
  AppProblem,
  AttemptOutcome,
  AttemptTrace,
  InstanceInfo,
  InvocationTrace,
  LogEntry,
  SessionCounts,
  SessionRecord,
  SessionState,
  SessionTrace,
  StartKind,
  UnfiredTrigger,
  VersionInfo,
} from './session.ts';
export {
  CONTENT_BYTES,
  CONTENT_JSON,
  isJsonType,
  type ObjectHeader,
  type Payload,
  type PayloadHeader,
} from './values.ts';
