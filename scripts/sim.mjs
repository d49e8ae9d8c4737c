// `npm run sim -- --seeds 10000 [--from 1] [--threads N]`: runs so many seeds of the simulator, and says which fail.
// `npm run sim -- --seed N`: runs one, with everything that happens in it.
//
// Build first. What a seed means changes with every commit: a seed is replayed on the commit that it was found on.

import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { SeedRunner, simulate } from '../dist/testing/index.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
/** Between two lines of progress. */
const PROGRESS_MS = 10_000;

process.exitCode = values.seed === undefined ? await many() : await one(Number(values.seed));

async function one(seed) {
  const result = await simulate({ seed, onTrace: (line) => process.stdout.write(`${line}\n`) });
  for (const { checker, message } of result.violations) process.stdout.write(`\n${checker}: ${message}\n`);
  const { hash, events, sessions, executions, deaths } = result;
  process.stdout.write(
    `\nseed ${seed} on ${commit()}: ${result.violations.length} violations; ${events} events, ${sessions} sessions, ` +
      `${executions} executions, ${deaths} deaths; hash ${hash}\n`,
  );
  return result.violations.length === 0 ? 0 : 1;
}

async function many() {
  const from = Number(values.from);
  const count = Number(values.seeds);
  const runner = new SeedRunner(Number(values.threads));
  const startedMs = performance.now();
  let done = 0;
  let events = 0;
  let executions = 0;
  let deaths = 0;
  const failed = [];
  const rate = () => (done / ((performance.now() - startedMs) / 1_000)).toFixed(1);
  const progress = setInterval(() => {
    process.stdout.write(`${done} of ${count} seeds, ${rate()} a second, ${failed.length} failed\n`);
  }, PROGRESS_MS);
  await runner.run(seedsFrom(from, count), (result) => {
    done++;
    events += result.events;
    executions += result.executions;
    deaths += result.deaths;
    if (result.violations.length === 0) return;
    failed.push(result.seed);
    process.stdout.write(`\nseed ${result.seed} fails; replay it with\n  npm run sim -- --seed ${result.seed}\n`);
    for (const { checker, message } of result.violations.slice(0, 3)) {
      process.stdout.write(`  ${checker}: ${message.slice(0, 500)}\n`);
    }
    for (const line of result.trace.slice(-10)) process.stdout.write(`    ${line}\n`);
  });
  clearInterval(progress);
  await runner.close();
  const host = `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  process.stdout.write(
    `\n${new Date().toISOString().slice(0, 10)}, commit ${commit()}: seeds ${from} to ${from + count - 1}, ${failed.length} with violations; ` +
      `${events} events, ${executions} executions, ${deaths} deaths; ${rate()} seeds a second on ${host}\n`,
  );
  if (failed.length > 0) process.stdout.write(`failed: ${failed.sort((a, b) => a - b).join(' ')}\n`);
  return failed.length === 0 ? 0 : 1;
}

function* seedsFrom(from, count) {
  for (let seed = from; seed < from + count; seed++) yield { seed };
}

function commit() {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim();
  } catch {
    return 'unknown';
  }
}
