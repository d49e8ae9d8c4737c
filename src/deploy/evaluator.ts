// Entry file of the process that loads an app to learn its manifest. Its answer is a file, for standard output is the
// app's own. Arguments: the bundle's main file, the file to answer in, the SDK's internal door.

import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { Manifest } from '../protocol/index.ts';

export type Evaluated =
  | { readonly type: 'app'; readonly name: string; readonly manifest: Manifest }
  | { readonly type: 'no-default' }
  | { readonly type: 'not-an-app'; readonly what: string }
  /** `stack` is source-mapped by Node. */
  | { readonly type: 'threw'; readonly name: string; readonly message: string; readonly stack: string };

interface SdkInternal {
  isApp(value: unknown): value is { readonly name: string };
  manifestOf(app: { readonly name: string }): Manifest;
}

async function evaluate(mainFile: string, sdkFile: string): Promise<Evaluated> {
  try {
    const sdk = (await import(pathToFileURL(sdkFile).href)) as SdkInternal;
    const module = (await import(pathToFileURL(mainFile).href)) as { default?: unknown };
    if (!Object.hasOwn(module, 'default')) return { type: 'no-default' };
    const app = module.default;
    if (!sdk.isApp(app)) return { type: 'not-an-app', what: typeof app };
    return { type: 'app', name: app.name, manifest: sdk.manifestOf(app) };
  } catch (thrown) {
    return threw(thrown);
  }
}

function threw(thrown: unknown): Evaluated {
  if (!(thrown instanceof Error)) return { type: 'threw', name: '', message: `thrown: ${String(thrown)}`, stack: '' };
  return { type: 'threw', name: thrown.name, message: thrown.message, stack: String(thrown.stack) };
}

const [mainFile, answerFile, sdkFile] = process.argv.slice(2);
if (mainFile === undefined || answerFile === undefined || sdkFile === undefined) {
  throw new Error('evaluator: started without its arguments; it is started by evaluate.js only');
}
function answer(evaluated: Evaluated, file: string): never {
  writeFileSync(file, JSON.stringify(evaluated));
  // The app's own timers and sockets must not keep this process alive.
  process.exit(0);
}
process.on('uncaughtException', (thrown) => answer(threw(thrown), answerFile));
answer(await evaluate(mainFile, sdkFile), answerFile);
