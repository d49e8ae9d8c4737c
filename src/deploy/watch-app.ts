// Bundles an app again whenever one of its files is saved.
//
// WA1. Changes are reported one after the other; the next waits until the one before was taken.
// WA2. A save that changes nothing in the bundle is not reported, and neither is the same failure twice.
// WA3. The last report belongs to the files as they are: a save during a build leads to another build.

import { existsSync, type FSWatcher, statSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { scheduler } from 'node:timers/promises';
import { PlatformError } from '../base/index.ts';
import { type BundledApp, evaluateCompiled } from './bundle-app.ts';
import { type Compiled, Compiler } from './compile.ts';
import type { EvaluateOptions } from './evaluate.ts';
import { WATCH_DEBOUNCE_MS, WATCH_SETTLE_BUILDS_MAX } from './limits.ts';

export type AppChange =
  | { readonly ok: true; readonly app: BundledApp }
  /** E_APP_INVALID. Watching goes on. */
  | { readonly ok: false; readonly error: PlatformError };

export interface AppWatch {
  /** Waits for a report that is under way; none comes after it. Rejects if `onChange` did. */
  close(): Promise<void>;
}

/**
 * @param onChange must not reject. Called once before the promise resolves, then after each change.
 * @returns once the first build, good or bad, was reported.
 */
export async function watchApp(
  entryFile: string,
  onChange: (change: AppChange) => void | Promise<void>,
  options: Omit<EvaluateOptions, 'signal'> = {},
): Promise<AppWatch> {
  const watcher = new AppWatcher(entryFile, onChange, options);
  await watcher.buildAndReport();
  watcher.follow();
  return watcher;
}

class AppWatcher implements AppWatch {
  readonly #compiler: Compiler;
  readonly #onChange: (change: AppChange) => void | Promise<void>;
  readonly #options: EvaluateOptions;
  readonly #closing = new AbortController();
  readonly #folders = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>();
  /** Files whose events count. While the build fails every file does: one may be what is missing. */
  #inputs: ReadonlySet<string> = new Set();
  #failing = false;
  #reported: string | undefined;
  /** Counts events; `#built` is where the build that ran last began. */
  #events = 0;
  #built = 0;
  #wake: () => void = () => {};
  #following: Promise<void> | undefined;

  constructor(entryFile: string, onChange: (change: AppChange) => void | Promise<void>, options: EvaluateOptions) {
    this.#compiler = new Compiler(entryFile);
    this.#onChange = onChange;
    this.#options = { ...options, signal: this.#closing.signal };
  }

  follow(): void {
    this.#following = this.#follow();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
    try {
      await this.#following;
    } finally {
      await this.#compiler.close();
    }
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      while (this.#events === this.#built && !signal.aborted) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      // Quiet for a moment: whatever is being saved is then saved.
      for (let seen = -1; seen !== this.#events && !signal.aborted; ) {
        seen = this.#events;
        await scheduler.wait(WATCH_DEBOUNCE_MS, { signal }).catch(() => undefined);
      }
      if (!signal.aborted) await this.buildAndReport();
    }
  }

  async buildAndReport(): Promise<void> {
    this.#built = this.#events;
    const compiled = await this.#compile();
    const change = await this.#changeOf(compiled);
    if (change === undefined || this.#closing.signal.aborted) return;
    const fingerprint = change.ok
      ? change.app.version + JSON.stringify(change.app.bundle.files)
      : JSON.stringify(change.error.details);
    if (fingerprint === this.#reported) return;
    this.#reported = fingerprint;
    await this.#onChange(change);
  }

  /** A folder is watched only from the end of a build on; so one that is new is followed by another build. */
  async #compile(): Promise<Compiled> {
    let compiled = await this.#compiler.compile();
    for (let i = 0; this.#watchFolders(compiled) && i < WATCH_SETTLE_BUILDS_MAX; i++) {
      compiled = await this.#compiler.compile();
    }
    this.#inputs = new Set(compiled.inputs);
    this.#failing = compiled.problems.length > 0;
    return compiled;
  }

  /** Undefined when it was ended by `close`. */
  async #changeOf(compiled: Compiled): Promise<AppChange | undefined> {
    try {
      return { ok: true, app: await evaluateCompiled(compiled, this.#compiler.entry, this.#options) };
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'E_APP_INVALID') return { ok: false, error };
      if (this.#closing.signal.aborted) return undefined;
      throw error;
    }
  }

  /** @returns whether there is a new one. */
  #watchFolders({ inputs, lookedIn }: Compiled): boolean {
    const wanted = new Set([...inputs.map((file) => dirname(file)), ...lookedIn].map(nearestFolder));
    for (const [folder, { watcher, inode }] of this.#folders) {
      // A folder that was replaced by another one of its name is watched no more.
      if (wanted.has(folder) && inodeOf(folder) === inode) continue;
      watcher.close();
      this.#folders.delete(folder);
    }
    if (this.#closing.signal.aborted) return false;
    let added = false;
    for (const folder of wanted) {
      if (this.#folders.has(folder)) continue;
      const inode = inodeOf(folder);
      if (inode === undefined) continue;
      const watcher = watch(folder, (_, name) => this.#onEvent(folder, name));
      watcher.on('error', () => this.#onEvent(folder, null));
      this.#folders.set(folder, { watcher, inode });
      added = true;
    }
    return added;
  }

  #onEvent(folder: string, name: string | null): void {
    const gone = inodeOf(folder) !== this.#folders.get(folder)?.inode;
    if (name !== null && !gone && !this.#failing && !this.#inputs.has(join(folder, name))) return;
    this.#events++;
    this.#wake();
  }
}

function nearestFolder(folder: string): string {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function inodeOf(folder: string): number | undefined {
  return statSync(folder, { throwIfNoEntry: false })?.ino;
}
