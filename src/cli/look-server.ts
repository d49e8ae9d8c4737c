// What a server has and how it is set: instances, nodes, limits.

import type { InstanceInfo } from '../protocol/index.ts';
import { type CommandSpec, look } from './command.ts';
import { age, bytes, type Column, duration, type Paint, shorten, shortVersion, table } from './text.ts';

const CELL_CHARS_MAX = 60;

export const INSTANCES: CommandSpec = {
  usage: 'instances',
  does: 'list live instances, why each was started and why it is kept',
  json: true,
  options: [{ flags: '--app <app>', does: 'of this app only' }],
  examples: [['antrail instances --app ad-events', 'what is warm']],
  run: (run) =>
    look<{ instances: InstanceInfo[] }>(run, '/v1/instances', { app: run.options.app }, ({ instances }) =>
      orNothing(instances, 'No instances.', [
        { title: 'instance', value: ({ instance }) => instance },
        { title: 'app', value: ({ app }) => app },
        { title: 'pool', value: ({ pool }) => pool },
        { title: 'node', value: ({ node }) => node },
        {
          title: 'state',
          value: ({ state }) => state,
          color: ({ state }) => (state === 'busy' ? 'blue' : state === 'idle' ? 'green' : 'yellow'),
        },
        { title: 'started', value: ({ startedAt }) => age(startedAt) },
        { title: 'uses', value: ({ useCount }) => useCount, align: 'right' },
        { title: 'why started', value: ({ whyStarted }) => whyStarted },
        { title: 'why kept', value: ({ whyKept }) => whyKept },
      ])(run.paint),
    ),
};

export const NODES: CommandSpec = {
  usage: 'nodes',
  does: 'list the nodes of the server',
  json: true,
  examples: [['antrail nodes', 'who is there and how loaded']],
  run: (run) => look<{ nodes: Row[] }>(run, '/v1/nodes', {}, ({ nodes }) => anyTable(nodes, 'No nodes.', run.paint)),
};

export const LIMITS: CommandSpec = {
  usage: 'limits',
  does: 'show the limits and defaults in force, each with its reason',
  json: true,
  examples: [['antrail limits', 'sizes, times and counts']],
  run: (run) =>
    look<{ limits: Limit[] }>(run, '/v1/limits', {}, ({ limits }) =>
      orNothing(limits, 'No limits.', [
        { title: 'name', value: ({ name }) => name, color: () => 'bold' },
        { title: 'value', value: limitText, align: 'right' },
        { title: 'why', value: ({ why }) => why },
      ])(run.paint),
    ),
};

interface Limit {
  readonly name: string;
  readonly value: number | string;
  readonly unit?: string;
  readonly why: string;
}

type Row = Readonly<Record<string, unknown>>;

export function orNothing<T>(
  rows: readonly T[],
  nothing: string,
  columns: readonly Column<T>[],
): (paint: Paint) => string {
  return (paint) => (rows.length === 0 ? `${nothing}\n` : table(rows, columns, paint));
}

/** For rows whose fields may grow: every field that any row has is a column. */
function anyTable(rows: readonly Row[], nothing: string, paint: Paint): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.map(
    (name): Column<Row> => ({
      title: titleOf(name),
      value: (row) => cellText(name, row[name]),
      ...(rows.some((row) => typeof row[name] === 'number') ? { align: 'right' } : {}),
    }),
  );
  return orNothing(rows, nothing, columns)(paint);
}

/** `machineMemoryFreeBytes` as `machine memory free`: the cell has the unit. */
function titleOf(name: string): string {
  return name.replace(/(?<=.)(Bytes|At)$/, '').replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function cellText(name: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' && name.endsWith('Bytes')) return bytes(value);
  if (typeof value === 'string' && name.endsWith('At')) return age(value);
  return shorten(plainText(value), CELL_CHARS_MAX);
}

/** Lists with commas; of a record in a list its fields, which are few: what is left over has --json. */
function plainText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return JSON.stringify(value);
  return value
    .map((item: unknown) =>
      typeof item === 'object' && item !== null && !Array.isArray(item)
        ? Object.values(item)
            .filter((field) => field !== null)
            .map((field) => (typeof field === 'string' ? shortVersion(field) : plainText(field)))
            .join(' ')
        : plainText(item),
    )
    .join(', ');
}

function limitText({ value, unit }: Limit): string {
  if (typeof value === 'number' && unit === 'bytes') return bytes(value);
  if (typeof value === 'number' && unit === 'ms') return duration(value);
  const figure = typeof value === 'number' ? value.toLocaleString('en-US') : value;
  return unit === undefined ? figure : `${figure} ${unit}`;
}
