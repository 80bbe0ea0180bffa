/**
 * What stands behind the API (L3) and how it is reached: kubelets, pods, services, extension API servers.
 * Connections are connect.ts's matter, what is done with them plainProxy.ts's and tunnel.ts's.
 */
import type { Agent } from 'node:http'
import type { ServerRequest } from '../core/request.ts'
import type { Reach } from './reach.ts'

export interface BackendTls {
  /** PEM: what we show. */
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  /** PEM: who must have signed the backend's certificate. */
  readonly ca?: string | Buffer | undefined
  /** The name that the certificate must carry. Absent: the host, if there is a `ca`; otherwise any. */
  readonly serverName?: string | undefined
  /** Nothing is checked. So it is without `ca` and `serverName` too, as upstream proxies to pods. */
  readonly insecure?: boolean | undefined
}

/** What a request must have to be sent on. */
export type ForwardedRequest = Pick<ServerRequest, 'method' | 'path' | 'headers' | 'remoteAddress'> & {
  readonly cancellation: Pick<ServerRequest['cancellation'], 'signal'>
  readonly user?: ServerRequest['user'] | undefined
}

export interface Backend {
  readonly host: string
  readonly port: number
  /** Present: TLS. */
  readonly tls?: BackendTls | undefined
  /** Path and query, escaped. */
  readonly path: string
  /** The Host header sent to the backend; default: the client's. */
  readonly hostHeader?: string | undefined
  /** Where the client sees the backend's root, such as `/api/v1/nodes/n/proxy`: links in answers are rewritten to it. Absent: they are left. */
  readonly prefix?: string | undefined
  /** Identity headers for the request; they replace any that the client sent. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined
  /** Whether this IP address may be connected to; a name is refused when one of its addresses is. Absent: every address may. */
  readonly mayDial?: ((address: string) => boolean) | undefined
  /** More headers that would name an identity to this backend, in lower case; one that ends in a hyphen stands for all that begin so. */
  readonly identityHeaders?: readonly string[] | undefined
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** Keeps connections, which `reach` makes. Absent: one per request. */
  readonly agent?: Agent | undefined
}

export function isUpgrade(request: ServerRequest): boolean {
  const connection = request.headers.connection
  return typeof connection === 'string' && connection.toLowerCase().includes('upgrade') && request.headers.upgrade !== undefined
}

/** host:port as in URLs. */
export function authority({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
