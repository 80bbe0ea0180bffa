/**
 * The connection to one endpoint of etcd (L2). With its first call, each new connection asks which cluster and which version it leads to: another
 * member may answer at the same address after a restart or an upgrade.
 */
import { connectGrpc, type Greeting, type GrpcConnection } from '#grpc/grpcConnection'
import type { GrpcTls } from '#grpc/grpcSession'
import type { KeepAlive } from '#grpc/pings'
import type { Introduction } from './membership.ts'
import { methodOf } from './methods.ts'
import type { StatusResponse } from './operations.ts'

export interface Member {
  readonly connection: GrpcConnection
  /** Undefined until the member has answered. */
  readonly version: string | undefined
}

interface MemberOptions {
  readonly url: string
  readonly tls: GrpcTls | undefined
  readonly maxAnswerBytes: number
  /** @throws Error when the endpoint must not be used */
  readonly accept: (introduction: Introduction) => void
}

/** An endpoint that swallows packets is given up after this time; the next one is tried then. */
const connectTimeoutMs = 2_500
/** Servers of etcd end connections that ping more often than every five seconds; the pause doubles for one whose limit is higher. */
export const keepAlive: KeepAlive = { pauseMs: 6_000, timeoutMs: 3_000 }

/** @throws Error naming a URL that cannot be read */
export function connectMember({ url, tls, maxAnswerBytes, accept }: MemberOptions): Member {
  let version: string | undefined
  const status = methodOf('Maintenance.Status')
  const greeting: Greeting = {
    path: status.path,
    request: status.request.encode({}),
    accept: (answer) => {
      const { header, version: answered } = status.response.decode(answer) as StatusResponse
      accept({ url, clusterId: header?.clusterId ?? '' })
      version = answered
    },
  }
  const { target, isSecure } = targetOf(url)
  const connection = connectGrpc(target, {
    ...{ connectTimeoutMs, keepAlive, greeting, maxMessageBytes: maxAnswerBytes },
    ...(isSecure ? { tls: tls ?? {} } : {}),
  })
  return {
    connection,
    get version() {
      return version
    },
  }
}

/** What to connect to for a URL of an endpoint; a port that the URL does not name is its scheme's. @throws Error naming a URL that cannot be read */
export function targetOf(url: string): { readonly target: string; readonly isSecure: boolean } {
  if (url.startsWith('unix:')) return { target: url, isSecure: false }
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:')
    throw new Error(`"${url}" is no endpoint of etcd: use http://HOST:PORT or https://HOST:PORT`)
  const isSecure = parsed.protocol === 'https:'
  return { target: `${parsed.hostname}:${parsed.port || (isSecure ? '443' : '80')}`, isSecure }
}
