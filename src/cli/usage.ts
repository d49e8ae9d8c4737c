// Arguments as people write them. What cannot be understood is a UsageError: exit code 2.

/** Wrong usage; the message says what to write instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `250ms`, `30s`, `1.5m`, `2h`, `1d`. A bare number is refused: seconds and milliseconds are too easily mixed up. */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  if (match !== null) return Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? 0));
  const hint = /^\d+(\.\d+)?$/.test(text) ? `: write ${text}s or ${text}ms` : ' such as 30s, 500ms or 2m';
  throw new UsageError(`"${text}" is not a duration${hint}`);
}

/** 0 to 65,535. */
export function parsePort(text: string): number {
  return parseInteger(text, 0, 65_535, 'a port');
}

export function parseCount(text: string): number {
  return parseInteger(text, 0, Number.MAX_SAFE_INTEGER, 'a number');
}

/** For options that may be given several times: `K=V` into one object. */
export function collectPair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`"${text}" is not KEY=VALUE`);
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

export function oneOf<const T extends string>(values: readonly T[]): (text: string) => T {
  return (text) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw new UsageError(`"${text}" is none of ${values.join(', ')}`);
    return found;
  };
}

function parseInteger(text: string, min: number, max: number, what: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new UsageError(`"${text}" is not ${what} (${min} to ${max})`);
  return value;
}
