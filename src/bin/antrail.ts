#!/usr/bin/env node
import { main, processTerminal } from '../cli/index.ts';

// What a command waits for may not keep the process alive by itself (timeouts of fetch, for one).
const alive = setInterval(() => undefined, 2 ** 30);
const exitCode = await main(process.argv.slice(2), processTerminal());
clearInterval(alive);
// Exits rather than waits: connections that are kept alive must not keep a command alive. All output is written by then.
process.exit(exitCode);
