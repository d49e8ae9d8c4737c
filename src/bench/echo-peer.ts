// Entry of the process with the HTTP peers. Its first line on stdout are their ports.

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import fastify from 'fastify';

export interface EchoPeerPorts {
  /** Fastify: `POST /` answers with the value of its JSON body. The peer of an invocation that does the same. */
  readonly fastify: number;
  /** No server at all: one fixed answer for each chunk that arrives. Shows how fast the client could be. */
  readonly bare: number;
}

const HOST = '127.0.0.1';
const BARE_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';

async function serve(): Promise<EchoPeerPorts> {
  const echo = fastify({ logger: false });
  echo.post('/', async (request) => request.body);
  await echo.listen({ host: HOST, port: 0 });

  const bare = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('data', () => socket.write(BARE_ANSWER));
    socket.on('error', () => socket.destroy());
  });
  bare.listen(0, HOST);
  await once(bare, 'listening');
  return {
    fastify: (echo.server.address() as AddressInfo).port,
    bare: (bare.address() as AddressInfo).port,
  };
}

// Importing its types starts nothing.
if (argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${JSON.stringify(await serve())}\n`);
  // Whoever started it holds its stdin: when that ends, so does this.
  process.stdin.on('end', () => process.exit(0)).resume();
}
