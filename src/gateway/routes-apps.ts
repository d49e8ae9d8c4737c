// Deployed applications and their triggers.

import { PlatformError } from '../base/index.ts';
import type { AppBundle, TriggerSpec } from '../protocol/index.ts';
import { type Route, route } from './route.ts';

export const APP_ROUTES: readonly Route[] = [
  route({
    method: 'PUT',
    path: '/v1/apps/{app}',
    id: 'deploy',
    summary: 'Deploys a version of an app',
    body: { schema: 'Bundle' },
    answers: {
      200: { about: 'the same content is there already', body: { schema: 'Deployed' } },
      201: { about: 'deployed', body: { schema: 'Deployed' } },
    },
    codes: ['E_JSON_INVALID', 'E_APP_INVALID', 'E_BODY_TOO_LARGE', 'E_QUOTA_EXCEEDED'],
    async answer(exchange) {
      const name = exchange.param('app');
      const { bundle, env } = bundleOf(await exchange.jsonObject('{ manifest, main, files, env? }'));
      const { app, version, created } = await exchange.gate.controlPlane.deploy(name, bundle, env);
      exchange.json(created ? 201 : 200, { app, version }, ['location', `/v1/apps/${encodeURIComponent(app)}`]);
    },
  }),
  route({
    method: 'GET',
    path: '/v1/apps',
    id: 'listApps',
    summary: 'All apps',
    answers: { 200: { about: 'the apps', body: { schema: 'Apps' } } },
    async answer(exchange) {
      exchange.json(200, await exchange.gate.controlPlane.listApps());
    },
  }),
  route({
    method: 'GET',
    path: '/v1/apps/{app}',
    id: 'getApp',
    summary: 'Manifest and versions of an app',
    answers: { 200: { about: 'the app', body: { schema: 'App' } } },
    codes: ['E_APP_UNKNOWN'],
    async answer(exchange) {
      exchange.json(200, await exchange.gate.controlPlane.getApp(exchange.param('app')));
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/apps/{app}',
    id: 'deleteApp',
    summary: 'Removes an app',
    answers: { 200: { about: 'removed', body: { schema: 'AppReference' } } },
    codes: ['E_APP_UNKNOWN'],
    async answer(exchange) {
      const app = exchange.param('app');
      await exchange.gate.controlPlane.deleteApp(app);
      exchange.json(200, { app });
    },
  }),
  route({
    method: 'PUT',
    path: '/v1/apps/{app}/buckets/{bucket}/triggers/{trigger}',
    id: 'putTrigger',
    summary: 'Adds or changes a trigger of a running app',
    body: { schema: 'Trigger' },
    answers: {
      200: { about: 'changed', body: { schema: 'TriggerReference' } },
      201: { about: 'added', body: { schema: 'TriggerReference' } },
    },
    codes: ['E_APP_UNKNOWN', 'E_BUCKET_UNKNOWN', 'E_FUNCTION_UNKNOWN', 'E_APP_INVALID', 'E_JSON_INVALID'],
    async answer(exchange) {
      const [app, bucket, trigger] = [exchange.param('app'), exchange.param('bucket'), exchange.param('trigger')];
      const spec = await exchange.jsonObject('{ kind, …options }');
      if (typeof spec.kind !== 'string') throw bundleInvalid('`kind` must be the name of a trigger primitive');
      // Which kinds there are and what they take is the control plane's to say.
      const { created } = await exchange.gate.controlPlane.putTrigger(
        app,
        bucket,
        trigger,
        spec as unknown as TriggerSpec,
      );
      exchange.json(created ? 201 : 200, { app, bucket, trigger });
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/apps/{app}/buckets/{bucket}/triggers/{trigger}',
    id: 'deleteTrigger',
    summary: 'Removes a trigger of a running app',
    answers: { 200: { about: 'removed', body: { schema: 'TriggerReference' } } },
    codes: ['E_APP_UNKNOWN', 'E_BUCKET_UNKNOWN', 'E_TRIGGER_UNKNOWN'],
    async answer(exchange) {
      const [app, bucket, trigger] = [exchange.param('app'), exchange.param('bucket'), exchange.param('trigger')];
      await exchange.gate.controlPlane.deleteTrigger(app, bucket, trigger);
      exchange.json(200, { app, bucket, trigger });
    },
  }),
];

/** Checks the frame only; what the manifest says is the control plane's to check. */
function bundleOf(body: Record<string, unknown>): { bundle: AppBundle; env?: Record<string, string> } {
  const { manifest, main, files, env } = body;
  if (!isRecord(manifest)) throw bundleInvalid('`manifest` must be an object');
  if (!isRecord(manifest.functions)) throw bundleInvalid('`manifest.functions` must be an object');
  if (manifest.buckets !== undefined && !isRecord(manifest.buckets)) {
    throw bundleInvalid('`manifest.buckets` must be an object');
  }
  if (!isRecord(files)) throw bundleInvalid('`files` must be an object from path to text or { base64 }');
  for (const [path, file] of Object.entries(files)) {
    if (typeof file !== 'string' && !(isRecord(file) && typeof file.base64 === 'string')) {
      throw bundleInvalid(`\`files\` must have text or { base64 } at ${JSON.stringify(path)}`);
    }
  }
  if (typeof main !== 'string' || !Object.hasOwn(files, main)) throw bundleInvalid('`main` must name one of `files`');
  if (env !== undefined && !(isRecord(env) && Object.values(env).every((value) => typeof value === 'string'))) {
    throw bundleInvalid('`env` must be an object of texts');
  }
  const bundle = { manifest: { ...manifest, buckets: manifest.buckets ?? {} }, main, files } as unknown as AppBundle;
  return env === undefined ? { bundle } : { bundle, env: env as Record<string, string> };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bundleInvalid(what: string): PlatformError {
  return new PlatformError('E_APP_INVALID', `${what}.`, { details: { problems: [{ message: what }] } });
}
