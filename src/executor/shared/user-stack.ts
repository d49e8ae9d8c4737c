// Stacks as the app's author wrote the code: paths from the folder of the app, no frames of this package or of Node's inside.

import type { ErrorData } from '../../base/index.ts';

/** Ends in a separator. Source maps name `src` in it, else it is `dist`. */
const PACKAGE_ROOT = decodeURIComponent(new URL(import.meta.url).pathname).replace(
  /[^/]*\/executor\/shared\/[^/]*$/,
  '',
);
const FRAME = /^\s+at /;
/** What the bundler calls this package inside an app's bundle, and what Node has inside. */
const INNER_FRAME = /\bantrail:|\bnode:internal\//;

/** @param folder of the version's files, without a separator at its end. */
export function withUserStack(error: ErrorData, folder: string): ErrorData {
  const { stack, cause } = error;
  if (stack === undefined && cause === undefined) return error;
  return {
    ...error,
    ...(stack === undefined ? {} : { stack: userStack(stack, folder) }),
    ...(cause === undefined ? {} : { cause: withUserStack(cause, folder) }),
  };
}

export function userStack(stack: string, folder: string, packageRoot = PACKAGE_ROOT): string {
  const inFolder = `${folder}/`;
  const lines: string[] = [];
  let usersEnd = -1;
  for (const line of stack.split('\n')) {
    if (!FRAME.test(line)) lines.push(line);
    // The data folder may lie inside the package: what is the app's is looked for first.
    else if (line.includes(inFolder)) {
      lines.push(line.replace(`file://${inFolder}`, '').replace(inFolder, ''));
      usersEnd = lines.length;
    } else if (!line.includes(packageRoot) && !INNER_FRAME.test(line)) lines.push(line);
  }
  // Below the app's outermost frame is only how it came to be called.
  return (usersEnd < 0 ? lines : lines.slice(0, usersEnd)).join('\n');
}
