// One simulated run: what a seed stands for.
//
//   safety:    clients ask, and things go wrong, for SPAN_MS
//   liveness:  nothing goes wrong any more; everything that was accepted must end within QUIET_MS, or as many times as long
//              as there is still something that was not begun before (a few instances and many functions that hang)
//   account:   what every session came to is asked for, and the checkers look at it all

import type { HostStats, HostToServer } from '../protocol/index.ts';
import { check } from './check.ts';
import { Client } from './clients.ts';
import type { EndMessage, Violation } from './evidence.ts';
import { Faults, planFaults } from './faults.ts';
import { generateApp } from './generator.ts';
import { History } from './history.ts';
import { SimMachine } from './machine.ts';
import { PLANTS } from './plants.ts';
import { codeOf } from './script.ts';
import { Workload } from './workload.ts';
import { World } from './world.ts';

export interface SimulationOptions {
  readonly seed: number;
  /** Name of one of PLANTS. */
  readonly plant?: string;
  readonly onTrace?: (line: string) => void;
}

export interface SimulationResult {
  readonly seed: number;
  readonly hash: string;
  readonly events: number;
  readonly executions: number;
  readonly deaths: number;
  readonly sessions: number;
  readonly violations: readonly Violation[];
  /** The last of what happened. */
  readonly trace: readonly string[];
}

/** Faults and requests begin within this time. */
const SPAN_MS = 1_500;
/** Everything ends within this time once nothing goes wrong: the longest back-off and time-out, several times over. */
const QUIET_MS = 60_000;
/** And with very much work within so many times that, if in each of them something is begun for the first time. */
const QUIET_TIMES_MAX = 20;

/** Runs one seed. The same seed gives the same hash. Simulations in one thread run one after the other. */
export async function simulate({ seed, plant, onTrace }: SimulationOptions): Promise<SimulationResult> {
  const world = new World(seed);
  if (onTrace !== undefined) world.onTrace = onTrace;
  const history = new History();
  const random = world.random('settings');
  const settings = {
    instancesMax: 2 + random.int(4),
    queueMax: 5 + random.int(60),
    inlineBytesMax: 512 + random.int(4_000),
  };
  const mischief = {
    failing: random.float() * 0.3,
    hanging: random.float() * 0.15,
    exiting: random.float() * 0.1,
    dragging: random.float() * 0.25,
  };
  const plan = planFaults(random);
  const scripts = Array.from({ length: random.float() < 0.7 ? 1 : 2 }, (_, i) =>
    generateApp(world.random(`app ${i}`), `app${i}`, mischief),
  );
  const machine = new SimMachine(world, settings, codeOf(world, history));
  const client = new Client(world, machine, history);
  const workload = new Workload(world, client, scripts, { requests: 3 + random.int(25), spanMs: SPAN_MS });
  const faults = new Faults(world, machine, history, client);
  const violations: Violation[] = [];
  const ends: EndMessage[] = [];
  machine.network.onFrame = (from, _to, header) => {
    const message = header as HostToServer;
    if (message.type !== 'session-ended') return;
    const { session, run, state, error } = message;
    const incarnation = machine.processes.find(({ actor }) => actor === from)?.incarnation ?? 0;
    const boot = machine.server?.boot ?? 0;
    const end = { session, run, state, incarnation, boot, atMs: world.nowMs };
    ends.push(error === undefined ? end : { ...end, error });
  };
  world.onSettled = () => {
    try {
      machine.checkInvariants();
    } catch (error) {
      world.uncaught.push(error);
    }
  };
  const onRejection = (error: unknown) => world.caught(error);
  process.on('unhandledRejection', onRejection);
  process.on('uncaughtException', onRejection);
  const unplant = PLANTS.find(({ name }) => name === plant)?.put(machine);
  try {
    machine.startServer();
    workload.begin();
    faults.begin(plan, SPAN_MS);
    await world.run(world.nowMs + SPAN_MS);
    world.note('faults end');
    faults.end();
    const quietFromMs = world.nowMs;
    const isOver = () => workload.isOver && isQuiet(machine);
    for (let times = 0, begun = -1; times < QUIET_TIMES_MAX && !isOver(); times++) {
      const now = new Set(history.executions.map(({ session, invocation }) => `${session} ${invocation}`)).size;
      if (now === begun) break;
      begun = now;
      await world.run(world.nowMs + QUIET_MS, isOver);
    }
    if (!(workload.isOver && isQuiet(machine)) && world.uncaught.length === 0) {
      violations.push({
        checker: 'liveness',
        message: `not quiet ${Math.round(world.nowMs - quietFromMs)} ms after the last fault: ${whatLives(machine, history)}`,
      });
    }
    // Time for what is told late: records, acknowledgements, windows of triggers.
    await world.run(world.nowMs + 1_000);
    let looked = false;
    const stats: HostStats[] = [];
    const look = async () => {
      await workload.look(history);
      for (const { connection } of machine.server?.core?.supervisor.states() ?? []) {
        const said = await connection?.request({ type: 'stats-get' });
        if (said?.reply.stats !== undefined) stats.push(said.reply.stats);
      }
      looked = true;
    };
    look().catch((error) => world.caught(error));
    await world.run(world.nowMs + QUIET_MS, () => looked);
    for (const error of world.uncaught) {
      violations.push({ checker: 'invariants', message: error instanceof Error ? String(error.stack) : String(error) });
    }
    if (world.uncaught.length === 0) {
      if (!looked) violations.push({ checker: 'liveness', message: 'sessions cannot be looked at' });
      violations.push(
        ...check({
          history,
          scripts,
          ends,
          boots: machine.server?.boot ?? 0,
          appOf: new Map(machine.processes.map(({ incarnation, boot }) => [incarnation, boot.app])),
          stats,
          keys: machine.disk.keys(''),
        }),
      );
    }
  } finally {
    unplant?.();
    await world.run(world.nowMs);
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onRejection);
  }
  return {
    seed,
    hash: world.hash,
    events: world.eventCount,
    executions: history.executions.length,
    deaths: history.deaths.length,
    sessions: new Set(history.executions.map(({ session }) => session)).size,
    violations,
    trace: world.trace,
  };
}

/** No session lives, and no server or host is about to come up. */
function isQuiet({ server }: SimMachine): boolean {
  return server?.core !== undefined && server.core.coordinator.table.size === 0;
}

function whatLives({ server }: SimMachine, history: History): string {
  const live = [...(server?.core?.coordinator.table.all() ?? [])].map(
    ({ id, phase, run }) => `${id} ${phase} run ${run}`,
  );
  const asked = history.calls
    .filter(({ answer }) => answer === undefined)
    .map(({ what, detail }) => `${what} ${JSON.stringify(detail)}`);
  return `sessions ${live.join(', ')}; unanswered ${asked.join(', ')}`;
}
