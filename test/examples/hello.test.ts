// Goal: the app of the quick start answers as its comments say. Method: deploy it to a real server, call it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import { type ExampleServer, openServer } from '../../examples/server.ts';

type Hello = typeof import('../../examples/hello/app.ts').default;

let server: ExampleServer;
before(async () => {
  server = await openServer();
  assert.equal(await server.deploy('examples/hello/app.ts'), 'hello');
});
after(() => server?.close());

test('the second function answers with what the first sent', async () => {
  const hello = connect<Hello>({ app: 'hello', url: server.url });
  assert.equal(await hello.invoke('greet', { name: 'ant' }), 'HELLO, ANT!');
  assert.equal(await hello.invoke('greet'), 'HELLO, WORLD!');
});

test('deploying it again changes nothing', async () => {
  const [before] = (await server.client.apps()).apps;
  await server.deploy('examples/hello/app.ts');
  const [now, ...others] = (await server.client.apps()).apps;
  assert.equal(now?.version, before?.version);
  assert.equal(others.length, 0);
});
