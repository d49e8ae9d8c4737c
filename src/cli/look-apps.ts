import { apiPath } from '../client/index.ts';
import type { AppInfo } from '../protocol/index.ts';
import { type CommandSpec, look } from './command.ts';
import { bucketsText, functionsText } from './manifest-text.ts';
import { age, facts, type Paint, shortVersion, table } from './text.ts';

export const APPS: CommandSpec = {
  usage: 'apps',
  does: 'list the deployed apps',
  json: true,
  examples: [['antrail apps', 'which apps run here, in which version']],
  run: (run) => look<{ apps: AppInfo[] }>(run, '/v1/apps', {}, ({ apps }) => appsText(apps, run.paint)),
};

export const APP: CommandSpec = {
  usage: 'app <app>',
  does: 'show an app: functions, buckets, triggers, versions',
  json: true,
  examples: [
    ['antrail app ad-events', 'what it is made of'],
    ['antrail app ad-events --json', 'its manifest, for a program'],
  ],
  run: (run, [app]) => look<AppInfo>(run, apiPath('apps', app), {}, (info) => appText(info, run.paint)),
};

function appsText(apps: readonly AppInfo[], paint: Paint): string {
  if (apps.length === 0) return 'No apps yet. Deploy one: antrail deploy app.ts\n';
  return table(
    apps,
    [
      { title: 'app', value: ({ app }) => app, color: () => 'bold' },
      { title: 'version', value: ({ version }) => shortVersion(version) },
      { title: 'entry', value: ({ manifest }) => manifest?.entry },
      { title: 'functions', value: ({ manifest }) => sizeOf(manifest?.functions), align: 'right' },
      { title: 'buckets', value: ({ manifest }) => sizeOf(manifest?.buckets), align: 'right' },
      { title: 'running', value: ({ versions }) => running(versions), align: 'right' },
      { title: 'deployed', value: ({ deployedAt }) => age(deployedAt) },
    ],
    paint,
  );
}

function appText({ app, version, deployedAt, manifest, versions }: AppInfo, paint: Paint): string {
  const parts = [
    facts(
      [
        ['app', paint('bold', app)],
        ['version', version],
        ['deployed', age(deployedAt)],
      ],
      paint,
    ),
    functionsText(manifest, paint),
    bucketsText(manifest, paint),
    table(
      versions,
      [
        { title: 'version', value: (row) => row.version },
        { title: 'current', value: (row) => (row.current ? 'current' : ''), color: () => 'green' },
        { title: 'deployed', value: (row) => age(row.deployedAt) },
        { title: 'used by', value: (row) => row.usedBy, align: 'right' },
      ],
      paint,
    ),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function running(versions: AppInfo['versions'] | undefined): number | undefined {
  return versions?.reduce((sum, { usedBy }) => sum + usedBy, 0);
}

function sizeOf(record: object | undefined): number | undefined {
  return record === undefined ? undefined : Object.keys(record).length;
}
