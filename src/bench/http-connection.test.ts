// Goal: the lean client takes answers apart right however they arrive, and never passes a failure off as an answer.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { HttpConnection, requestBytes } from './http-connection.ts';

/** A server that answers the n-th request with the n-th list of chunks, one a write; closes when it has no more. */
async function connectionTo(answers: string[][]): Promise<{ ask: () => Promise<string>; close: () => void }> {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('data', async () => {
      const chunks = answers.shift();
      if (chunks === undefined) socket.destroy();
      for (const chunk of chunks ?? []) await new Promise((written) => socket.write(chunk, written));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const connection = await HttpConnection.open(address);
  const request = requestBytes(address, '/echo', '"ä"');
  return {
    ask: async () => (await connection.request(request)).toString(),
    close: () => {
      connection.close();
      server.close();
    },
  };
}

test('answers in one piece and in many are the same', async () => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nx: y\r\n\r\n"ä"';
  const { ask, close } = await connectionTo([
    [answer],
    [...answer],
    ['HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n'],
    [answer],
  ]);
  assert.deepEqual([await ask(), await ask(), await ask(), await ask()], ['"ä"', '"ä"', '', '"ä"']);
  close();
});

test('another status, no length and a closed connection are failures', async () => {
  const { ask, close } = await connectionTo([
    ['HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull'],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ]);
  await assert.rejects(ask(), /HTTP\/1.1 503 Service Unavailable: full/);
  await assert.rejects(ask(), /without content-length/);
  await assert.rejects(ask(), { code: 'E_NODE_LOST' });
  await assert.rejects(ask(), { code: 'E_NODE_LOST' });
  close();
});

test('the request is one well-formed POST', () => {
  const bytes = requestBytes({ host: '127.0.0.1', port: 80 }, '/a', '"ä"').toString();
  assert.equal(
    bytes,
    'POST /a HTTP/1.1\r\nhost: 127.0.0.1:80\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n"ä"',
  );
});
