// What must not be left lying about: banned calls, dead files, unknown error codes, broken links, machine paths.
//
// Each check takes files and returns problems; test/tidy.test.ts runs them over the tree and over made-up files.
// Where a ban is wrong for good reason, add a row to EXCEPTIONS; the reason is read by people.

import { importsOf, isTestFile, lineAt, type Problem, resolveImport, type SourceFile, scan } from './source.ts';

interface Ban {
  /** What EXCEPTIONS call it. */
  readonly name: string;
  /** Matched against code without comments and strings. */
  readonly pattern: RegExp;
  readonly instead: string;
}

const CLOCK = 'take the Clock port of src/platform: durations are monotonic, wall-clock time is for people';
const TIMERS = 'take the Timers port of src/platform, so that the simulator owns time';
const RANDOM = 'take the Random port of src/platform (or base Prng with a seed)';
const COMPOSER = 'read it in src/node, src/cli or src/bin and hand it in as an option';

/** A name used as itself or as a property of the global object, not as a member of something else. */
function global(name: string): RegExp {
  return new RegExp(`(?:\\bglobalThis\\s*\\.\\s*|(?<![\\w$.#]))${name}\\b(?!\\s*\\??:)`, 'g');
}

export const BANS: readonly Ban[] = [
  { name: 'Date.now', pattern: global('Date\\s*\\.\\s*now'), instead: CLOCK },
  { name: 'new Date()', pattern: /(?<![\w$.#])new\s+Date\b(?!\s*\(\s*[^)\s])/g, instead: CLOCK },
  { name: 'performance.now', pattern: global('performance\\s*\\.\\s*(?:now|timeOrigin)'), instead: CLOCK },
  { name: 'process.hrtime', pattern: global('process\\s*\\.\\s*hrtime'), instead: CLOCK },
  { name: 'Math.random', pattern: global('Math\\s*\\.\\s*random'), instead: RANDOM },
  {
    name: 'randomUUID',
    pattern: /\b(?:randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/g,
    instead: RANDOM,
  },
  { name: 'setTimeout', pattern: global('setTimeout'), instead: TIMERS },
  { name: 'setInterval', pattern: global('setInterval'), instead: TIMERS },
  { name: 'setImmediate', pattern: global('setImmediate'), instead: TIMERS },
  { name: 'AbortSignal.timeout', pattern: global('AbortSignal\\s*\\.\\s*timeout'), instead: TIMERS },
  { name: 'process.env', pattern: global('process\\s*\\.\\s*env'), instead: COMPOSER },
  {
    name: 'console',
    pattern: global('console\\s*\\.'),
    instead: 'emit a trace event (Trace port); only commands print',
  },
];

/** Where real time, the environment and the terminal belong: the composition, the commands, the real adapters. */
const FREE_FOLDERS = ['src/platform/node/', 'src/node/', 'src/cli/', 'src/bin/', 'src/bench/'];

/** A ban that does not hold somewhere. `path` is a file or a folder with `/` at its end. */
export const EXCEPTIONS: readonly { readonly path: string; readonly ban: string; readonly reason: string }[] = [
  {
    path: 'src/executor/guest/',
    ban: 'setImmediate',
    reason: 'runs user code: gives its promises and timers a turn between two invocations',
  },
  {
    path: 'src/executor/guest/',
    ban: 'console',
    reason: "turns the user's console output into log lines of the invocation",
  },
  {
    path: 'src/testing/world.ts',
    ban: 'setImmediate',
    reason: 'virtual time goes on when all promises of an event are settled: one turn of the real event loop',
  },
  {
    path: 'src/client/pause.ts',
    ban: 'setTimeout',
    reason: "runs in the user's process, where no port exists: waits between retries",
  },
];

/** Files that are started by path (threads, processes), which no import shows. */
export const ENTRY_FILES: readonly { readonly path: string; readonly reason: string }[] = [];

export function checkBans(files: readonly SourceFile[], exceptions = EXCEPTIONS): Problem[] {
  const problems: Problem[] = [];
  for (const file of files) {
    if (!file.path.startsWith('src/') || isTestFile(file.path)) continue;
    if (FREE_FOLDERS.some((folder) => file.path.startsWith(folder))) continue;
    const { code } = scan(file.text);
    for (const ban of BANS) {
      if (exceptions.some((row) => row.ban === ban.name && isAt(file.path, row.path))) continue;
      for (const match of code.matchAll(ban.pattern)) {
        problems.push({
          path: file.path,
          line: lineAt(file.text, match.index),
          message: `${ban.name}: ${ban.instead}`,
        });
      }
    }
  }
  return problems;
}

/** Syntax that the style rules out. */
export function checkSyntax(files: readonly SourceFile[]): Problem[] {
  const rows = [
    { pattern: /\bexport\s*\*/g, message: 'export *: name what the door gives' },
    {
      pattern: /(?<![\w$.])(?:const\s+)?enum\s+[A-Za-z_$][\w$]*\s*\{/g,
      message: 'enum: use a union of string literals',
    },
    { pattern: /(?<![\w$.])(?:namespace|module)\s+[A-Za-z_$][\w$.]*\s*\{/g, message: 'namespace: use a module' },
  ];
  const problems: Problem[] = [];
  for (const file of files) {
    const { code } = scan(file.text);
    for (const { pattern, message } of rows) {
      for (const match of code.matchAll(pattern)) {
        problems.push({ path: file.path, line: lineAt(file.text, match.index), message });
      }
    }
  }
  return problems;
}

/** Notes to oneself. Only comments are looked at: a program may handle such words as data. */
export function checkLeftovers(files: readonly SourceFile[]): Problem[] {
  const words = new RegExp(`\\b(?:${['FIX', 'TO'].map((start, i) => start + ['ME', 'DO'][i]).join('|')}|X{3})\\b`);
  const problems: Problem[] = [];
  for (const file of files) {
    const isPython = file.path.endsWith('.py');
    if (!isPython && !/\.(?:[cm]?[jt]s|tsx|css)$/.test(file.path)) continue;
    const comments = isPython
      ? [...file.text.matchAll(/#.*/g)].map((match) => ({ at: match.index, text: match[0] }))
      : scan(file.text).comments;
    for (const comment of comments) {
      const found = words.exec(comment.text);
      if (found === null) continue;
      const line = lineAt(file.text, comment.at + found.index);
      problems.push({
        path: file.path,
        line,
        message: `${found[0]} left over: do it, or open an issue and delete the note`,
      });
    }
  }
  return problems;
}

/**
 * Files of src that nothing reaches. What only a test imports is dead too, except `internal.ts`, what that imports,
 * and src/testing.
 */
export function checkReached(files: readonly SourceFile[], entries = ENTRY_FILES): Problem[] {
  const sources = new Map(files.filter(({ path }) => path.startsWith('src/')).map((file) => [file.path, file]));
  // A folder whose door is not there yet is being laid: its files are looked at once it has one.
  const folderOf = (path: string) => path.split('/').slice(0, 2).join('/');
  const isRoot = (path: string) =>
    !sources.has(`${folderOf(path)}/index.ts`) ||
    /^src\/(?:.+\/)?(?:index|internal)\.ts$/.test(path) ||
    path.startsWith('src/bin/') ||
    path.startsWith('src/testing/') ||
    entries.some((entry) => entry.path === path);
  const reached = new Set([...sources.keys()].filter(isRoot));
  for (const path of reached) {
    for (const { specifier } of importsOf(sources.get(path)?.text ?? '')) {
      const target = resolveImport(path, specifier);
      if (target !== undefined && sources.has(target)) reached.add(target);
    }
  }
  const problems: Problem[] = entries
    .filter((entry) => !sources.has(entry.path))
    .map((entry) => ({
      path: entry.path,
      line: 1,
      message: 'is gone: delete its row of ENTRY_FILES (test/checks/tidy.ts)',
    }));
  for (const path of sources.keys()) {
    if (reached.has(path) || isTestFile(path) || path.endsWith('.d.ts')) continue;
    const message =
      'nothing imports this file: export it from its folder’s index.ts, delete it, or, if it is started by path, add it to ENTRY_FILES (test/checks/tidy.ts)';
    problems.push({ path, line: 1, message });
  }
  return problems;
}

/** Codes in strings of src that the table does not know. */
export function checkErrorCodes(files: readonly SourceFile[], known: ReadonlySet<string>): Problem[] {
  const problems: Problem[] = [];
  for (const file of files) {
    if (!file.path.startsWith('src/') || isTestFile(file.path)) continue;
    for (const string of scan(file.text).strings) {
      if (!/^E_[A-Z][A-Z0-9_]*$/.test(string.value) || known.has(string.value)) continue;
      const message = `${string.value} is not in ERROR_TABLE (src/base/errors.ts): add it there and to docs/errors.md`;
      problems.push({ path: file.path, line: lineAt(file.text, string.at), message });
    }
  }
  return problems;
}

export interface ErrorFacts {
  readonly kind: string;
  readonly status: number;
  readonly title: string;
}

/** docs/errors.md and the table say the same: every code once, with its kind, status, title, a cause and a remedy. */
export function checkErrorPage(page: SourceFile, table: Readonly<Record<string, ErrorFacts>>): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  for (const match of page.text.matchAll(/^### (E_\w+)$\n([\s\S]*?)(?=^#|(?![\s\S]))/gm)) {
    const [, code = '', body = ''] = match;
    const problem = (message: string) =>
      problems.push({ path: page.path, line: lineAt(page.text, match.index), message });
    const facts = table[code];
    if (seen.has(code)) problem(`${code} has two sections`);
    seen.add(code);
    if (facts === undefined) {
      problem(`${code} is not in ERROR_TABLE (src/base/errors.ts): delete its section`);
      continue;
    }
    const head = `${facts.title}. Kind \`${facts.kind}\`, status ${facts.status}.`;
    if (!body.includes(head)) problem(`${code} must say: ${head}`);
    for (const label of ['Cause', 'Remedy']) {
      if (!new RegExp(`^\\*\\*${label}\\.\\*\\* \\S`, 'm').test(body)) problem(`${code} has no **${label}.** line`);
    }
  }
  for (const code of Object.keys(table)) {
    if (!seen.has(code)) {
      problems.push({
        path: page.path,
        line: 1,
        message: `${code} has no section: add \`### ${code}\` with cause and remedy`,
      });
    }
  }
  return problems;
}

/** Paths of somebody's machine. They mean nothing to the reader. */
export function checkMachinePaths(files: readonly SourceFile[]): Problem[] {
  const pattern = new RegExp(`(?<![\\w.:/-])/(?:${['work', 'farm', 'home/\\w+', 'Users/\\w+'].join('|')})/`, 'g');
  return files.flatMap((file) =>
    [...file.text.matchAll(pattern)].map((match) => ({
      path: file.path,
      line: lineAt(file.text, match.index),
      message: `${match[0]} is a path of one machine: say it relative to the repository`,
    })),
  );
}

/** Links of Markdown files to files of the repository. */
export function checkLinks(files: readonly SourceFile[], exists: (path: string) => boolean): Problem[] {
  const problems: Problem[] = [];
  for (const file of files) {
    if (!file.path.endsWith('.md')) continue;
    // Examples in code blocks are not links; the blanks keep lines and lengths.
    const text = file.text.replace(/^```[\s\S]*?^```|`[^`\n]*`/gm, (block) => block.replace(/[^\n]/g, ' '));
    for (const match of text.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?([^\s>]+)/gm)) {
      const link = (match[1] ?? match[2] ?? '').replace(/[?#].*$/, '');
      if (link === '' || /^[a-z][a-z0-9+.-]*:/i.test(link)) continue;
      const target = resolveImport(file.path, link.startsWith('.') ? link : `./${link}`)?.replace(/\/$/, '') ?? '';
      // resolveImport turns .js into .ts; a document means what it says.
      const wanted = link.endsWith('.js') ? target.replace(/\.ts$/, '.js') : target;
      if (wanted === '' || exists(wanted)) continue;
      problems.push({ path: file.path, line: lineAt(text, match.index), message: `the link to ${link} leads nowhere` });
    }
  }
  return problems;
}

/** Every folder of src is in the folder table of the architecture page. */
export function checkFolderTable(page: SourceFile, files: readonly SourceFile[]): Problem[] {
  const folders = new Set(
    files.map(({ path }) => /^src\/[^/]+(?=\/)/.exec(path)?.[0]).filter((name) => name !== undefined),
  );
  return [...folders]
    .filter((folder) => !page.text.includes(`\`${folder}\``))
    .map((folder) => ({ path: page.path, line: 1, message: `the folder table has no row for \`${folder}\`: add one` }));
}

/** Test files that cannot fail, or that switch the rest of their file off. */
export function checkTests(files: readonly SourceFile[]): Problem[] {
  const problems: Problem[] = [];
  for (const file of files) {
    if (!isTestFile(file.path)) continue;
    const { code } = scan(file.text);
    if (!/\bassert\b|\bassert[A-Z]\w*\s*\(|\bt\.assert\b|\bexpect\s*\(|[cC]onformance\w*\s*\(/.test(code)) {
      problems.push({ path: file.path, line: 1, message: 'asserts nothing: say what must hold' });
    }
    for (const match of code.matchAll(/\b(?:test|it|describe|suite)\.only\b|\bonly:\s*true\b/g)) {
      problems.push({
        path: file.path,
        line: lineAt(file.text, match.index),
        message: 'only: the other tests do not run',
      });
    }
  }
  return problems;
}

function isAt(path: string, place: string): boolean {
  return place.endsWith('/') ? path.startsWith(place) : path === place;
}
