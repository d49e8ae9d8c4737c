// Reads TypeScript well enough for the checks: what is code, what is comment, what is a string, what is imported.
//
// Not a parser. TypeScript 7 has no JavaScript interface, and the rules need only tokens.

/** One file of the tree; `path` is relative to the root, with `/`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One broken rule; `message` says what to do instead. */
export interface Problem {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export interface Scanned {
  /** The text with comments, string contents and regular expressions blanked; same length and lines. */
  readonly code: string;
  readonly comments: readonly { readonly at: number; readonly text: string }[];
  /** Quoted strings and the literal parts of templates; `at` is where the content begins. */
  readonly strings: readonly { readonly at: number; readonly value: string }[];
}

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** `import type` and `export type`: gone after compilation. */
  readonly typeOnly: boolean;
  /** `import()`, or a file named by `new URL('…', import.meta.url)`. */
  readonly kind: 'static' | 'dynamic' | 'url';
}

/** Words after which `/` begins a regular expression; after other words it divides. */
const BEFORE_REGEXP = /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;

export function scan(text: string): Scanned {
  const out = text.split('');
  const comments: { at: number; text: string }[] = [];
  const strings: { at: number; value: string }[] = [];
  /** For each open template, how many braces are open inside its `${`. */
  const templates: number[] = [];
  let codeTail = '';
  let i = 0;

  const blank = (from: number, to: number) => {
    for (let at = from; at < to; at++) if (out[at] !== '\n') out[at] = ' ';
  };
  /** From just after the opening backtick or `}` to the closing one or the next `${`. */
  const readTemplate = () => {
    const from = i;
    while (i < text.length && text[i] !== '`' && !(text[i] === '$' && text[i + 1] === '{'))
      i += text[i] === '\\' ? 2 : 1;
    strings.push({ at: from, value: text.slice(from, i) });
    blank(from, Math.min(i, text.length));
    if (text[i] === '`') i += 1;
    else {
      templates.push(0);
      i += 2;
    }
  };

  while (i < text.length) {
    const char = text[i] as string;
    const next = text[i + 1];
    if (char === '/' && (next === '/' || next === '*')) {
      const end = next === '/' ? text.indexOf('\n', i) : text.indexOf('*/', i + 2) + 2;
      const to = end === -1 || end === 1 ? text.length : end;
      comments.push({ at: i, text: text.slice(i, to) });
      blank(i, to);
      i = to;
    } else if (char === "'" || char === '"') {
      const from = ++i;
      while (i < text.length && text[i] !== char && text[i] !== '\n') i += text[i] === '\\' ? 2 : 1;
      strings.push({ at: from, value: text.slice(from, i) });
      blank(from, Math.min(i, text.length));
      i += 1;
      codeTail = "'";
    } else if (char === '`') {
      i += 1;
      readTemplate();
      codeTail = "'";
    } else if (
      char === '/' &&
      (/(?:^|[(,=:[!&|?{};<>+\-*%~^])$/.test(codeTail.trimEnd()) || BEFORE_REGEXP.test(codeTail.trimEnd()))
    ) {
      const from = ++i;
      for (let inClass = false; i < text.length && text[i] !== '\n' && (inClass || text[i] !== '/'); ) {
        if (text[i] === '[') inClass = true;
        if (text[i] === ']') inClass = false;
        i += text[i] === '\\' ? 2 : 1;
      }
      blank(from, Math.min(i, text.length));
      i += 1;
      codeTail = ')';
    } else {
      const depth = templates.length - 1;
      if (char === '{' && depth >= 0) templates[depth] = (templates[depth] ?? 0) + 1;
      if (char === '}' && depth >= 0) {
        if (templates[depth] === 0) {
          templates.pop();
          i += 1;
          readTemplate();
          codeTail = "'";
          continue;
        }
        templates[depth] = (templates[depth] ?? 0) - 1;
      }
      codeTail = (codeTail + char).slice(-24);
      i += 1;
    }
  }
  return { code: out.join(''), comments, strings };
}

export function importsOf(text: string, scanned: Scanned = scan(text)): Import[] {
  const { code, strings } = scanned;
  const valueAt = new Map(strings.map((string) => [string.at, string.value]));
  const imports: Import[] = [];
  const add = (match: RegExpExecArray, kind: Import['kind'], typeOnly: boolean) => {
    const specifier = valueAt.get(match.index + match[0].length);
    if (specifier !== undefined) imports.push({ specifier, kind, typeOnly, line: lineAt(text, match.index) });
  };
  // With verbatimModuleSyntax `import { type A } from` still loads the module: only `import type` is type-only.
  for (const match of code.matchAll(/(?<![\w$.])(?:import|export)\s+(type\s+(?!from\b))?[^;'"`()=]*?\bfrom\s*['"]/g)) {
    add(match, 'static', match[1] !== undefined);
  }
  for (const match of code.matchAll(/(?<![\w$.])import\s*['"]/g)) add(match, 'static', false);
  for (const match of code.matchAll(/(?<![\w$.])(?:import|require)\s*\(\s*['"`]/g)) {
    // `typeof import('x')` and `import('x').T` in a type look the same as a call; only the first is told apart.
    add(match, 'dynamic', /\btypeof\s+$/.test(code.slice(Math.max(0, match.index - 12), match.index)));
  }
  for (const match of code.matchAll(/(?<![\w$.])new\s+URL\s*\(\s*['"`]/g)) {
    if (/^[^)]*import\.meta\.url/.test(code.slice(match.index + match[0].length))) add(match, 'url', false);
  }
  return imports;
}

/** The file in src that an import means, for example `src/base/index.ts`; undefined for packages and `node:`. */
export function resolveImport(from: string, specifier: string): string | undefined {
  const toSource = (path: string) => path.replace(/\.js$/, '.ts');
  if (specifier.startsWith('#src/')) return toSource(`src/${specifier.slice('#src/'.length)}`);
  if (!specifier.startsWith('./') && !specifier.startsWith('../')) return undefined;
  const parts = from.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return toSource(parts.join('/'));
}

export function isTestFile(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}

export function lineAt(text: string, at: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i !== -1 && i < at; i = text.indexOf('\n', i + 1)) line++;
  return line;
}

/** For assertion messages: one problem a line. */
export function report(problems: readonly Problem[]): string {
  return problems.map((problem) => `${problem.path}:${problem.line}: ${problem.message}`).join('\n');
}
