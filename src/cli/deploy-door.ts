// The one way from commands to the bundler: loaded only by the commands that bundle.

import type { AppBundle } from '../protocol/index.ts';
import { loadPart } from './server-door.ts';

export interface BundledApp {
  readonly bundle: AppBundle;
  readonly appName: string;
  /** Files that it was made of. */
  readonly inputs: readonly string[];
}

export type WatchResult =
  | { readonly ok: true; readonly bundle: AppBundle; readonly appName: string }
  | { readonly ok: false; readonly error: unknown };

interface DeployPart {
  bundleApp(entryFile: string): Promise<BundledApp>;
  watchApp(entryFile: string, onChange: (result: WatchResult) => void): Promise<{ close(): Promise<void> }>;
}

/** @throws E_APP_INVALID (usage) with file and line. */
export async function bundleApp(entryFile: string): Promise<BundledApp> {
  return (await part()).bundleApp(entryFile);
}

export async function watchApp(
  entryFile: string,
  onChange: (result: WatchResult) => void,
): Promise<{ close(): Promise<void> }> {
  return (await part()).watchApp(entryFile, onChange);
}

function part(): Promise<DeployPart> {
  return loadPart<DeployPart>('deploy', 'bundler');
}
