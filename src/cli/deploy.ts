import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { apiPath, PlatformError } from '../client/index.ts';
import type { BundledApp } from '../deploy/index.ts';
import type { AppInfo } from '../protocol/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { bucketsText, functionsText, manifestDifferences } from './manifest-text.ts';
import { problemText } from './print-error.ts';
import { type Color, shortVersion } from './text.ts';
import { collectPair, UsageError } from './usage.ts';

const SIGN_COLORS: Readonly<Record<string, Color>> = { '+': 'green', '-': 'red', '~': 'yellow' };

export const DEPLOY: CommandSpec = {
  usage: 'deploy <file>',
  does: "bundle an app's file, upload it, and make it the current version",
  more: 'Running sessions keep their version. The same content again is the same version.',
  json: true,
  options: [
    { flags: '--diff', does: 'only show what would change against the deployed version' },
    { flags: '--env <KEY=VALUE>', does: 'environment of its instances; repeatable', parse: collectPair },
  ],
  examples: [
    ['antrail deploy app.ts', 'from a file whose default export is app(…)'],
    ['antrail deploy src/app.ts --diff', 'what would change'],
    ['antrail deploy app.ts --env STAGE=test --env LEVEL=2', 'with values for its env'],
  ],
  run: async (run, [file]) => {
    const entryFile = checkedAppFile(file);
    // Loaded late: looking commands need no bundler.
    const { bundleApp } = await import('../deploy/index.ts');
    const bundled = await bundleApp(entryFile);
    for (const warning of bundled.warnings) {
      await run.terminal.err(`${run.paint('yellow', 'warning')} ${problemText(warning)}\n`);
    }
    return run.options.diff === true ? printDifferences(run, bundled) : deploy(run, bundled);
  },
};

/** @throws UsageError when there is no such file. */
export function checkedAppFile(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new UsageError(`there is no file ${file}`);
  if (found.isDirectory())
    throw new UsageError(`${file} is a folder; name the file in it whose default export is app(…)`);
  return resolve(file);
}

async function deploy(run: Run, { appName, bundle }: BundledApp): Promise<undefined> {
  const { env } = run.options;
  const response = await run.server.request('PUT', apiPath('apps', appName), {
    body: {
      contentType: 'application/json',
      content: Buffer.from(JSON.stringify(env === undefined ? bundle : { ...bundle, env })),
    },
    signal: run.terminal.interrupted,
  });
  const text = await response.text();
  if (run.json) {
    await run.terminal.out(`${text}\n`);
    return undefined;
  }
  const { app, version } = JSON.parse(text) as { app: string; version: string };
  const done = response.status === 201 ? 'deployed' : 'unchanged';
  const { manifest } = bundle;
  const parts = [
    `${done} ${run.paint('bold', app)} version ${version}\n`,
    functionsText(manifest, run.paint),
    bucketsText(manifest, run.paint),
  ];
  await run.terminal.out(parts.filter((part) => part !== '').join('\n'));
  return undefined;
}

async function printDifferences(run: Run, { appName, bundle, version }: BundledApp): Promise<undefined> {
  const { terminal, paint } = run;
  const deployed = await deployedApp(run, appName);
  const lines = deployed === undefined ? [] : manifestDifferences(deployed.manifest, bundle.manifest);
  if (run.json) {
    const differences = deployed === undefined ? null : lines;
    await terminal.out(
      `${JSON.stringify({ app: appName, deployed: deployed?.version ?? null, version, differences })}\n`,
    );
    return undefined;
  }
  if (deployed === undefined) {
    const parts = [functionsText(bundle.manifest, paint), bucketsText(bundle.manifest, paint)];
    await terminal.out(`${paint('bold', appName)} is not deployed yet; all of it is new:\n\n${parts.join('\n')}`);
    return undefined;
  }
  const head = `${paint('bold', appName)} ${shortVersion(deployed.version)} → ${shortVersion(version)}`;
  const shown = lines.map((line) => `  ${paint(SIGN_COLORS[line[0] ?? ''] ?? 'dim', line)}`);
  if (shown.length === 0) shown.push(deployed.version === version ? '  no difference' : '  only code differs');
  await terminal.out(`${[head, ...shown].join('\n')}\nNothing was deployed.\n`);
  return undefined;
}

async function deployedApp(run: Run, app: string): Promise<AppInfo | undefined> {
  try {
    return await run.server.app(app);
  } catch (thrown) {
    if (thrown instanceof PlatformError && thrown.code === 'E_APP_UNKNOWN') return undefined;
    throw thrown;
  }
}
