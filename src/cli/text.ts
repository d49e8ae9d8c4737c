// Figures and tables for people. Nothing here is parsed again: programs take --json.

export type Color = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan';

const CODES: Readonly<Record<Color, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
};

/** Colours text, or leaves it when there is no colour. */
export type Paint = (color: Color, text: string) => string;

export function paintFor(color: boolean): Paint {
  if (!color) return (_, text) => text;
  return (name, text) => (text === '' ? '' : `\x1b[${CODES[name][0]}m${text}\x1b[${CODES[name][1]}m`);
}

/** Makes control characters visible: what apps write must not steer the terminal. Line breaks and tabs stay. */
export function printable(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}

/** On one line and at most `charsMax` long. */
export function shorten(text: string, charsMax: number): string {
  const line = printable(text).replace(/\s*\n\s*/g, ' ⏎ ');
  return line.length <= charsMax ? line : `${line.slice(0, Math.max(0, charsMax - 1))}…`;
}

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => string | number | undefined;
  readonly align?: 'right';
  readonly color?: (row: T) => Color | undefined;
}

/** Columns that no row has a value for are left out. Every line ends with a line break; without rows there is none. */
export function table<T>(rows: readonly T[], columns: readonly Column<T>[], paint: Paint): string {
  if (rows.length === 0) return '';
  const cells = rows.map((row) => columns.map((column) => printable(String(column.value(row) ?? ''))));
  const used = columns.map((_, at) => cells.some((line) => line[at] !== ''));
  const widths = columns.map((column, at) =>
    Math.max(column.title.length, ...cells.map((line) => line[at]?.length ?? 0)),
  );
  const lastUsed = used.lastIndexOf(true);
  const lineOf = (texts: readonly string[], colors: readonly (Color | undefined)[]) =>
    texts
      .map((text, at) => {
        if (!used[at]) return undefined;
        const width = widths[at] ?? 0;
        const right = columns[at]?.align === 'right';
        const padded = right ? text.padStart(width) : at === lastUsed ? text : text.padEnd(width);
        const color = colors[at];
        return color === undefined ? padded : padded.replace(text, () => paint(color, text));
      })
      .filter((text) => text !== undefined)
      .join('  ')
      .trimEnd();
  const head = lineOf(
    columns.map((column) => column.title),
    columns.map(() => 'dim' as const),
  );
  const lines = rows.map((row, n) =>
    lineOf(
      cells[n] ?? [],
      columns.map((column) => column.color?.(row)),
    ),
  );
  return `${[head, ...lines].join('\n')}\n`;
}

/** `name  value` lines with the values below each other; empty values are left out. */
export function facts(pairs: readonly (readonly [string, string | undefined])[], paint: Paint): string {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${paint('dim', name.padEnd(width))}  ${value}\n`).join('');
}

/** `0.4 ms`, `12 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 10) return `${round(ms, 1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${round(ms / 1_000, 1)} s`;
  if (ms < 3_600_000) return two(ms / 1_000, 60, 'min', 's');
  if (ms < 86_400_000) return two(ms / 60_000, 60, 'h', 'min');
  return two(ms / 3_600_000, 24, 'd', 'h');
}

/** Powers of 1,024: `312 B`, `1.5 KiB`, `1 GiB`. */
export function bytes(size: number): string {
  let value = size;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (value < 1_024) return `${unit === 'B' ? value : round(value, 1)} ${unit}`;
    value /= 1_024;
  }
  return `${round(value, 1)} TiB`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;
}

/** How long ago; empty when unknown. */
export function age(iso: string | undefined, nowMs = Date.now()): string {
  const at = iso === undefined ? Number.NaN : Date.parse(iso);
  return Number.isNaN(at) ? '' : `${duration(Math.max(0, nowMs - at))} ago`;
}

/** Milliseconds since 1970 with the fraction that Date drops: ISO times may carry microseconds. NaN if it is none. */
export function isoMs(iso: string): number {
  const match = /^(.*T[\d:]+)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)$/.exec(iso);
  if (match === null) return Date.parse(iso);
  return Date.parse(`${match[1]}${match[3]}`) + Number(`0.${match[2] ?? '0'}`) * 1_000;
}

/** Versions are content hashes: enough of one to tell it from the others. */
export function shortVersion(version: string): string {
  return version.length > 12 ? version.slice(0, 12) : version;
}

function round(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

function two(value: number, base: number, big: string, small: string): string {
  const whole = Math.floor(value / base);
  const rest = Math.floor(value % base);
  return rest === 0 ? `${whole} ${big}` : `${whole} ${big} ${rest} ${small}`;
}
