// Who may talk to a server that needs no token: programs of this machine, not web pages of others.
//
// A page can send requests to 127.0.0.1 (cross-site request), and with a DNS name that it points there it can even read
// the answers (DNS rebinding). The first carries a foreign Origin or Sec-Fetch-Site, the second a foreign Host.

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { PlatformError } from '../base/index.ts';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const ANY_ADDRESS = ['0.0.0.0', '::', ''];

export class HostGuard {
  readonly #names: Set<string>;
  /** Named by the operator: also allowed as the origin of pages, such as a proxy's public name. */
  readonly #allowed: Set<string>;
  readonly #anyAddress: boolean;
  readonly #anyHost: boolean;

  /** @param host what the server is bound to. @param allowedHosts names without port; `*` allows all. */
  constructor(host: string, allowedHosts: readonly string[]) {
    this.#allowed = new Set(allowedHosts.map((name) => bracketed(name.toLowerCase())));
    this.#anyHost = this.#allowed.has('*');
    this.#anyAddress = ANY_ADDRESS.includes(host);
    this.#names = new Set([...LOOPBACK, bracketed(host.toLowerCase()), ...this.#allowed]);
    if (this.#anyAddress) this.#names.add(hostname().toLowerCase());
  }

  /** @throws E_FORBIDDEN, E_REQUEST_INVALID. */
  check(req: IncomingMessage): void {
    const { headers } = req;
    const { host } = headers;
    if (host === undefined) {
      if (req.httpVersion !== '1.0') throw new PlatformError('E_REQUEST_INVALID', 'HTTP/1.1 needs a header `host`.');
    } else if (!this.#anyHost) this.#checkHost(host);
    const site = headers['sec-fetch-site'];
    if (headers.origin === undefined && (site === undefined || site === 'same-origin' || site === 'none')) return;
    if (req.method !== 'GET' && req.method !== 'HEAD') this.#checkOrigin(headers.origin, host);
  }

  #checkHost(host: string): void {
    const name = hostnameOf(host);
    if (this.#names.has(name)) return;
    if (name.startsWith('127.') && isIP(name) === 4) return;
    // An address is no name that somebody else could have pointed here.
    if (this.#anyAddress && isIP(name.startsWith('[') ? name.slice(1, -1) : name) !== 0) return;
    throw new PlatformError(
      'E_FORBIDDEN',
      `This server does not answer for the host ${JSON.stringify(name)}: a foreign name can be a web page's way in ` +
        '(DNS rebinding). If the name is yours, add it to `allowedHosts` in the configuration of the server.',
      { details: { host: name } },
    );
  }

  #checkOrigin(origin: string | undefined, host: string | undefined): void {
    if (origin !== undefined && origin !== 'null') {
      const originHost = URL.canParse(origin) ? new URL(origin).host.toLowerCase() : '';
      if (originHost !== '' && originHost === host?.toLowerCase()) return;
      if (this.#anyHost || this.#allowed.has(hostnameOf(originHost))) return;
    }
    throw new PlatformError(
      'E_FORBIDDEN',
      `A page of ${origin === undefined ? 'another site' : JSON.stringify(origin)} must not change anything here. ` +
        'If the page is yours, add its host name to `allowedHosts` in the configuration of the server.',
      origin === undefined ? {} : { details: { origin } },
    );
  }
}

/** `host:port` without the port, in lower case. */
function hostnameOf(host: string): string {
  const colon = host.lastIndexOf(':');
  const port = colon > host.lastIndexOf(']') ? colon : -1;
  return (port < 0 ? host : host.slice(0, port)).toLowerCase();
}

/** IPv6 addresses as Host headers write them. */
function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
