// `import 'antrail'` in an app means the package that deploys it: the app's folder needs no node_modules.
//
// Its files get a namespace of their own, so that nothing in the bundle tells where this package is installed.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';

export const SDK_NAMESPACE = 'antrail';

const PACKAGE_FILE = fileURLToPath(new URL('../../package.json', import.meta.url));
/** The root of this package; ends in a separator. */
export const PACKAGE_FOLDER = dirname(PACKAGE_FILE) + sep;

/** What runs in the evaluating process to turn an app into a manifest. The deploy side bundles the SDK, it does not use it. */
export const SDK_INTERNAL_FILE = join(PACKAGE_FOLDER, 'dist', 'sdk', 'internal.js');

type Exports = Readonly<Record<string, string | { readonly default: string }>>;

let exportsOnce: Exports | undefined;

function packageExports(): Exports {
  exportsOnce ??= (JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')) as { exports: Exports }).exports;
  return exportsOnce;
}

export const sdkPlugin: Plugin = {
  name: 'antrail-sdk',
  setup(build) {
    build.onResolve({ filter: /^antrail(\/|$)/ }, ({ path }) => {
      const doors = packageExports();
      const door = `.${path.slice('antrail'.length)}`;
      const target = Object.hasOwn(doors, door) ? doors[door] : undefined;
      if (target === undefined) {
        const names = Object.keys(doors).map((name) => `antrail${name.slice(1)}`);
        return { errors: [{ text: `There is no "${path}"; import one of ${names.join(', ')}` }] };
      }
      return inPackage(join(PACKAGE_FOLDER, typeof target === 'string' ? target : target.default));
    });
    build.onResolve({ filter: /^\./, namespace: SDK_NAMESPACE }, ({ path, resolveDir }) =>
      inPackage(join(resolveDir, path)),
    );
    build.onLoad({ filter: /.*/, namespace: SDK_NAMESPACE }, async ({ path }) => {
      const file = join(PACKAGE_FOLDER, path);
      const text = await readFile(file, 'utf8');
      return {
        contents: text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'),
        loader: file.endsWith('.json') ? 'json' : 'js',
        resolveDir: dirname(file),
      };
    });
  },
};

function inPackage(file: string): { path: string; namespace: string } {
  return { path: relative(PACKAGE_FOLDER, file).split(sep).join('/'), namespace: SDK_NAMESPACE };
}
