// What a suite hands back, and what its figures should reach.

import { availableParallelism, cpus, release, totalmem } from 'node:os';
import type { Samples } from './samples.ts';

export interface Metric {
  readonly name: string;
  /** The median, unless the name says something else. */
  readonly value: number;
  readonly unit: string;
  readonly p99?: number;
  /** In the same unit: what the design divides by. */
  readonly baseline?: number;
  /** value / baseline; only where a target is a quotient. */
  readonly ratio?: number;
}

export interface HostInfo {
  readonly cpus: number;
  readonly cpuModel: string;
  readonly memoryBytes: number;
  readonly node: string;
  readonly platform: string;
  readonly arch: string;
  readonly release: string;
}

export interface Report {
  readonly suite: string;
  readonly host: HostInfo;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly metrics: readonly Metric[];
}

export interface SuiteOptions {
  /** Fewer rounds: for a first look. */
  readonly quick: boolean;
  /** Folder of a trace, for suites that replay one. */
  readonly trace?: string;
  readonly signal: AbortSignal;
}

export type Suite = (options: SuiteOptions) => Promise<Report>;

/** A bound on a metric's ratio, or on its value where it is absolute. */
export interface Target {
  readonly of: 'ratio' | 'value';
  readonly atMost?: number;
  readonly atLeast?: number;
}

export function hostInfo(): HostInfo {
  return {
    cpus: availableParallelism(),
    cpuModel: cpus()[0]?.model ?? 'unknown',
    memoryBytes: totalmem(),
    node: process.version,
    platform: process.platform,
    arch: process.arch,
    release: release(),
  };
}

/** Median and p99 of the samples. */
export function metricOf(name: string, unit: string, samples: Samples): Metric {
  return { name, value: samples.median, unit, p99: samples.percentile(0.99) };
}

/** The same, divided by the baseline's median. */
export function ratioOf(name: string, unit: string, samples: Samples, baseline: number): Metric {
  const metric = metricOf(name, unit, samples);
  return { ...metric, baseline, ratio: metric.value / baseline };
}

/** `≤ 0.15`, with the unit where the bound is on the value. */
export function targetText(target: Target, unit: string): string {
  const bound = target.atMost === undefined ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
  return target.of === 'ratio' ? bound : `${bound} ${unit}`;
}

export function isReached(metric: Metric, { of, atMost, atLeast }: Target): boolean {
  const figure = of === 'ratio' ? metric.ratio : metric.value;
  if (figure === undefined) return false;
  return (atMost === undefined || figure <= atMost) && (atLeast === undefined || figure >= atLeast);
}
