// OpenAPI 3.1 out of the route table.

import { ERROR_TABLE, type ErrorCode } from '../base/index.ts';
import { SCHEMAS } from './openapi-schemas.ts';
import { CONTENT_PROBLEM } from './problem.ts';
import type { QueryParameter, QuerySpec } from './query.ts';
import type { BodyShape, Route } from './route.ts';

type Json = Record<string, unknown>;

/** Codes that any request can get. */
const EVERYWHERE: readonly ErrorCode[] = ['E_REQUEST_INVALID', 'E_FORBIDDEN', 'E_INTERNAL', 'E_SHUTTING_DOWN'];

export function openApiOf(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = path;
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'antrail',
      version: '1',
      description:
        'Names in paths are one percent-encoded segment each. Errors are application/problem+json with a stable `code`.',
    },
    paths,
    components: { schemas: SCHEMAS },
  };
}

function operationOf(route: Route): Json {
  const body =
    route.body === undefined
      ? {}
      : { requestBody: { required: route.bodyOptional !== true, content: contentOf(route.body) } };
  return {
    operationId: route.id,
    summary: route.summary,
    ...(route.about === undefined ? {} : { description: route.about }),
    parameters: [...pathParameters(route.path), ...queryParameters(route.query ?? {}), ...headerParameters(route)],
    ...body,
    responses: responsesOf(route),
  };
}

function pathParameters(path: string): Json[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters(query: QuerySpec): Json[] {
  return Object.entries(query).map(([name, parameter]) => ({
    name,
    in: 'query',
    description: parameter.about,
    schema: schemaOf(parameter),
  }));
}

function headerParameters(route: Route): Json[] {
  return Object.entries(route.headers ?? {}).map(([name, about]) => ({
    name,
    in: 'header',
    description: about,
    schema: { type: 'string' },
  }));
}

function schemaOf(parameter: QueryParameter): Json {
  switch (parameter.type) {
    case 'enum':
      return { type: 'string', enum: parameter.values };
    case 'integer':
      return { type: 'integer', minimum: parameter.min, maximum: parameter.max };
    case 'boolean':
      return { type: 'boolean' };
    case 'text':
      return { type: 'string', minLength: 1, maxLength: parameter.charsMax };
    case 'tags':
      return { type: 'array', items: { type: 'string', pattern: '^[^=]+=' } };
  }
}

function responsesOf(route: Route): Json {
  const responses: Record<string, Json> = {};
  for (const [status, { about, body }] of Object.entries(route.answers)) {
    responses[status] = { description: about, ...(body === 'empty' ? {} : { content: contentOf(body) }) };
  }
  const codesOf = new Map<number, ErrorCode[]>();
  for (const code of new Set([...EVERYWHERE, ...(route.codes ?? [])])) {
    const { status } = ERROR_TABLE[code];
    codesOf.set(status, [...(codesOf.get(status) ?? []), code]);
  }
  for (const [status, codes] of codesOf) {
    responses[status] = {
      description: codes.map((code) => `${code}: ${ERROR_TABLE[code].title}`).join('; '),
      content: { [CONTENT_PROBLEM]: { schema: { $ref: '#/components/schemas/Problem' } } },
    };
  }
  return responses;
}

function contentOf(shape: BodyShape): Json {
  if (typeof shape === 'object')
    return { 'application/json': { schema: { $ref: `#/components/schemas/${shape.schema}` } } };
  switch (shape) {
    case 'value':
      return { 'application/json': { schema: {} }, 'application/octet-stream': {} };
    case 'text':
      return { 'text/plain': { schema: { type: 'string' } } };
    case 'html':
      return { 'text/html': { schema: { type: 'string' } } };
    case 'events':
      return { 'text/event-stream': { schema: { type: 'string' } } };
    case 'lines':
      return { 'application/x-ndjson': { schema: { $ref: '#/components/schemas/LogEntry' } } };
    case 'empty':
      return {};
  }
}
