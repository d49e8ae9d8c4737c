import type { AppBundle, AppProblem, BundleFile } from '../protocol/index.ts';
import { checkManifest, type TriggerChecks } from './check-manifest.ts';
import { BUNDLE_FILES_MAX, BUNDLE_PATH_CHARS_MAX } from './limits.ts';
import { isFields, own, Problems, quoted, shown, suggestion } from './problems.ts';

export type DecodedBundle =
  | { readonly bundle: AppBundle; readonly problems?: never }
  | { readonly problems: readonly AppProblem[]; readonly bundle?: never };

/**
 * The body of `PUT /v1/apps/{app}`, from outside: everything that can be found without running it.
 *
 * A manifest without `buckets` gets an empty record of them. File paths of what is accepted are relative, with `/`, and
 * stay inside the folder they are written to.
 */
export function decodeBundle(body: unknown, checks: TriggerChecks): DecodedBundle {
  const problems = new Problems();
  if (!isFields(body)) {
    problems.add(`The body must be { manifest, main, files }; got ${shown(body)}.`);
    return { problems: problems.list() };
  }
  const known = ['manifest', 'main', 'files'];
  for (const name of Object.keys(body)) {
    if (!known.includes(name))
      problems.add(`The body has no field ${quoted(name)}; it takes manifest, main, files.${suggestion(name, known)}`);
  }
  const files = checkFiles(own(body, 'files'), problems);
  const main = own(body, 'main');
  if (typeof main !== 'string') problems.add(`main must be the path of a file in files; got ${shown(main)}.`);
  else if (!Object.hasOwn(files, main)) {
    problems.add(`main: there is no file ${quoted(main)} in files.${suggestion(main, Object.keys(files))}`);
  }
  const given = own(body, 'manifest');
  const manifest = isFields(given) && own(given, 'buckets') === undefined ? { ...given, buckets: {} } : given;
  const ofManifest = checkManifest(manifest, checks);
  const all = [...problems.list(), ...ofManifest];
  return all.length > 0 ? { problems: all } : { bundle: { manifest, main, files } as unknown as AppBundle };
}

function checkFiles(files: unknown, problems: Problems): Readonly<Record<string, BundleFile>> {
  if (!isFields(files)) {
    problems.add(`files must be { path: text or { base64 } }; got ${shown(files)}.`);
    return {};
  }
  const entries = Object.entries(files);
  if (entries.length > BUNDLE_FILES_MAX) {
    problems.add(`There are ${entries.length} files; at most ${BUNDLE_FILES_MAX} are possible: bundle them.`);
    return {};
  }
  const paths = new Set(entries.map(([path]) => path));
  for (const [path, file] of entries) {
    if (!isSafePath(path)) {
      problems.add(
        `files: ${quoted(path)} is no path for a file; make it relative, with "/", without "." and "..", ${BUNDLE_PATH_CHARS_MAX} characters at most.`,
      );
    } else if (isBelowFile(path, paths)) {
      problems.add(`files: ${quoted(path)} lies below another file; rename one of them.`);
    }
    if (!isFile(file)) {
      problems.add(
        `files[${quoted(path)}] must be text or { base64 }; got ${shown(file)}${isFields(file) ? ' without valid base64' : ''}.`,
      );
    }
  }
  return files as Readonly<Record<string, BundleFile>>;
}

function isSafePath(path: string): boolean {
  if (path === '' || path.length > BUNDLE_PATH_CHARS_MAX || path in Object.prototype) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
  if (/[\u0000-\u001f\u007f\\:]/.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && part.length <= 255);
}

function isBelowFile(path: string, paths: ReadonlySet<string>): boolean {
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    if (paths.has(path.slice(0, at))) return true;
  }
  return false;
}

function isFile(file: unknown): file is BundleFile {
  if (typeof file === 'string') return true;
  if (!isFields(file) || Object.keys(file).length !== 1) return false;
  const base64 = own(file, 'base64');
  return typeof base64 === 'string' && base64.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(base64);
}
