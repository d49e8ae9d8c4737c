// Options of a server, checked once; every field is there afterwards.

import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { GIB, KIB, MIB, nearMiss, PlatformError } from '../base/index.ts';
import { QUEUE_MAX, WEIGHT_DEFAULT } from '../scheduler/index.ts';

export interface ServerOptions {
  readonly dataDir: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** JSON with any of the fields of Settings. */
  readonly configFile?: string;
  /** Host names beside loopback and `host` that requests may name. */
  readonly allowedHosts?: readonly string[];
  /** Verifies that objects do not change after they were sent. */
  readonly dev?: boolean;
  readonly workerNodes?: number;
  /** What the server says of itself; default: standard error. */
  readonly log?: (entry: ServerLogEntry) => void;
}

export interface ServerLogEntry {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** What a config file may say. */
export interface Settings {
  readonly allowedHosts: readonly string[];
  readonly bodyBytesMax: number;
  /** Memory for objects of one app host; beyond it objects that nobody uses are spilled to disk. */
  readonly objectBytesMax: number;
  /** What running functions may use above that, because what is in use cannot be spilled. */
  readonly objectOverBytesMax: number;
  /** Objects of one app host on disk. */
  readonly spillBytesMax: number;
  /** Persisted objects of one app. */
  readonly persistedBytesMax: number;
  /** How long a persisted object is kept; 0: until it is deleted. */
  readonly persistedRetentionMs: number;
  /** Instances of one app host. */
  readonly instancesMax: number;
  /** Invocations of one app that wait, of sessions that have not begun. */
  readonly queueMax: number;
  /** By app: its share of what apps compete for. 1 where nothing is said; 2 is twice as much. */
  readonly weights: Readonly<Record<string, number>>;
  readonly inlineBytesMax: number;
  readonly verifyObjects: boolean;
}

/** Heavier or lighter by more than a hundred is not a share but a decision to starve somebody. */
const WEIGHT_MIN = 0.1;
const WEIGHT_MAX = 10;
const NICE_STEP = 1.25;
const NICENESS_MAX = 19;
/** User code never keeps the server from answering, refusing and looking after it. */
const NICENESS_MIN = 3;

/** The app's share of what apps compete for. */
export function weightOf({ weights }: Settings, app: string): number {
  return (Object.hasOwn(weights, app) ? weights[app] : undefined) ?? WEIGHT_DEFAULT;
}

/**
 * What makes processors be shared by weight: each step of niceness is worth a fifth less of a contended core (Linux, and near
 * enough elsewhere). Even the heaviest app goes behind the server.
 */
export function nicenessOf(settings: Settings, app: string): number {
  const heaviest = Math.max(WEIGHT_DEFAULT, ...Object.values(settings.weights));
  const steps = Math.log(heaviest / weightOf(settings, app)) / Math.log(NICE_STEP);
  return Math.min(NICENESS_MAX, NICENESS_MIN + Math.round(steps));
}

interface Rule {
  readonly is: (value: unknown) => boolean;
  readonly wants: string;
}

const COUNT: Rule = {
  is: (value) => Number.isSafeInteger(value) && Number(value) > 0,
  wants: 'a whole number above 0',
};
const RULES: Readonly<Record<keyof Settings, Rule>> = {
  allowedHosts: {
    is: (value) => Array.isArray(value) && value.every((host) => typeof host === 'string'),
    wants: 'a list of host names',
  },
  bodyBytesMax: COUNT,
  objectBytesMax: COUNT,
  objectOverBytesMax: COUNT,
  spillBytesMax: COUNT,
  persistedBytesMax: COUNT,
  persistedRetentionMs: {
    is: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
    wants: 'a whole number of milliseconds, 0 for ever',
  },
  instancesMax: COUNT,
  queueMax: COUNT,
  weights: {
    is: (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.values(value).every((weight) => Number(weight) >= WEIGHT_MIN && Number(weight) <= WEIGHT_MAX),
    wants: `an object of apps, each with its weight from ${WEIGHT_MIN} to ${WEIGHT_MAX}`,
  },
  inlineBytesMax: COUNT,
  verifyObjects: { is: (value) => typeof value === 'boolean', wants: 'true or false' },
};

/** @throws E_OPTION_INVALID: the config file cannot be read, is no JSON, or says something unknown. */
export function resolveSettings(options: ServerOptions): Settings {
  const config = options.configFile === undefined ? {} : readConfig(options.configFile);
  const defaults: Settings = {
    allowedHosts: [],
    bodyBytesMax: GIB,
    objectBytesMax: Math.min(8 * GIB, Math.max(256 * MIB, Math.floor(totalmem() / 4))),
    objectOverBytesMax: GIB,
    spillBytesMax: 64 * GIB,
    persistedBytesMax: 64 * GIB,
    persistedRetentionMs: 0,
    instancesMax: Math.max(8, 4 * availableParallelism()),
    queueMax: QUEUE_MAX,
    weights: {},
    inlineBytesMax: 16 * KIB,
    verifyObjects: options.dev === true,
  };
  const settings = { ...defaults, ...config };
  return { ...settings, allowedHosts: [...settings.allowedHosts, ...(options.allowedHosts ?? [])] };
}

function readConfig(file: string): Partial<Settings> {
  let config: unknown;
  try {
    config = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new PlatformError('E_OPTION_INVALID', `The config file ${file} cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new PlatformError('E_OPTION_INVALID', `The config file ${file} must hold one JSON object.`);
  }
  for (const [name, value] of Object.entries(config)) {
    const rule = Object.hasOwn(RULES, name) ? RULES[name as keyof Settings] : undefined;
    if (rule === undefined) {
      const near = nearMiss(name, Object.keys(RULES));
      const hint = near === undefined ? `Known are ${Object.keys(RULES).join(', ')}.` : `Did you mean '${near}'?`;
      throw new PlatformError('E_OPTION_INVALID', `The config file ${file} has an unknown option '${name}'. ${hint}`);
    }
    if (!rule.is(value)) {
      throw new PlatformError('E_OPTION_INVALID', `Option '${name}' of the config file ${file} must be ${rule.wants}.`);
    }
  }
  return config as Partial<Settings>;
}
