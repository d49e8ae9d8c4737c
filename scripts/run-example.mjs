import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { ROOT, runMain, setup } from './setup.mjs';

/** Set-up, then `examples/<name>.ts` as compiled, with this process's arguments; ends with its exit code. */
export async function runExample(name) {
  await runMain(async () => {
    await setup({ tests: true });
    const program = join(ROOT, `dist-test/examples/${name}.js`);
    const child = spawn(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' });
    // A terminal sends Ctrl-C to both; from elsewhere it arrives here only. The child decides when to end.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    return await new Promise((done, fail) => {
      child.on('error', fail);
      child.on('exit', (code, signal) => done(code ?? 128 + (constants.signals[signal] ?? 0)));
    });
  });
}
