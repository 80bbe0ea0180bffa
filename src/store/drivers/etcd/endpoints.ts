/**
 * Calls etcd at one of several endpoints (L2): at the one that answered last, and at the next one when it does not answer. A call that may have had an
 * effect is never repeated. Upstream: etcd client/v3 (balancer, retry interceptor).
 */
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { DuplexCall, GrpcMetadata } from '#grpc/grpcConnection'
import { GrpcError } from '#grpc/grpcError'
import type { GrpcTls } from '#grpc/grpcSession'
import type { ServiceMethod } from '#grpc/protoMessage'
import { isOutage } from './errors.ts'
import { connectMember, type Member } from './member.ts'
import { OtherClusterError, sameCluster } from './membership.ts'
import { methodOf } from './methods.ts'
import { hasSoundProgress } from './serverVersion.ts'

export interface EndpointsOptions {
  /** URLs: `http://host:port`, `https://host:port`, `unix:///path`. */
  readonly urls: readonly string[]
  readonly tls?: GrpcTls | undefined
  readonly clock: Clock
  /** Default: 1 GiB. */
  readonly maxAnswerBytes?: number | undefined
}

export interface EtcdCall {
  /** `KV.Range`, … */
  readonly method: string
  readonly request: object
  /** A call without an effect, or whose effect may happen twice. */
  readonly isRepeatable: boolean
  readonly signal: AbortSignal
}

export interface EtcdDuplex<Response> {
  send(message: object): void
  /** Resolves when the call is under way at a member, whose version is known then. @throws GrpcError; the signal's reason */
  readonly opened: Promise<void>
  readonly messages: AsyncIterable<Response>
}

export interface Endpoints {
  /** Connects to every endpoint, so that their versions are known; those that do not answer are asked when they are used. @throws OtherClusterError */
  connectAll(signal: AbortSignal): Promise<void>
  /** @throws GrpcError; the signal's reason when it fires */
  call<Response>(call: EtcdCall): Promise<Response>
  /** A call in both directions on the present endpoint. After it failed, the next one is opened on another endpoint. */
  duplex<Response>(method: string, signal: AbortSignal): EtcdDuplex<Response>
  /** Whether no endpoint is known to report progress too early. Each is asked again whenever a connection to it is opened. */
  hasSoundProgress(): boolean
  close(): void
}

/** Longer than an election, so that a change of leaders is waited for. */
const callTimeoutMs = 10_000
const firstPauseMs = 50
const longestPauseMs = 1_000
/** Bounds what an answer takes in memory: a page of two thousand objects of half a megabyte. */
const defaultMaxAnswerBytes = 1 << 30
/** The member ends the call when it knows no leader; without this a member that is cut off would keep watches that see nothing. */
const requireLeader: GrpcMetadata = { hasleader: 'true' }

/** @throws Error naming a URL that cannot be read */
export function createEndpoints({ urls, tls, clock, maxAnswerBytes = defaultMaxAnswerBytes }: EndpointsOptions): Endpoints {
  const accept = sameCluster()
  const members = urls.map((url) => connectMember({ url, tls, maxAnswerBytes, accept }))
  let current = 0
  const next = (failed: number) => {
    if (current === failed) current = (current + 1) % members.length
  }
  const call = async <Response>({ method: name, request, isRepeatable, signal }: EtcdCall): Promise<Response> => {
    const method = methodOf(name)
    const bytes = method.request.encode(request)
    const untilMs = clock.monotonicMs() + callTimeoutMs
    let outage: GrpcError | undefined
    for (let attempt = 1, pauseMs = firstPauseMs; ; attempt++) {
      const at = current
      try {
        const timeoutMs = Math.max(untilMs - clock.monotonicMs(), 1)
        return method.response.decode(await (members[at] as Member).connection.unary(method.path, bytes, { timeoutMs, signal })) as Response
      } catch (error) {
        if (!isOutage(error)) throw error
        next(at)
        const failed = error as GrpcError
        // A connection that did not get its turn before the deadline says less than the one before it.
        outage = failed.code === 'DEADLINE_EXCEEDED' && outage ? outage : failed
        const mayRepeat = isRepeatable || failed.isUnsent
        if (!mayRepeat || clock.monotonicMs() + pauseMs > untilMs) throw outage
        // Every endpoint gets its turn at once; then the round starts over after a pause.
        if (attempt % members.length !== 0) continue
        await clock.sleep(pauseMs, signal)
        pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      }
    }
  }
  const duplex: Endpoints['duplex'] = <Response>(name: string, signal: AbortSignal) => {
    const method = methodOf(name)
    const at = current
    const call = (members[at] as Member).connection.duplex(method.path, { signal, metadata: requireLeader })
    const onError = (error: unknown): never => {
      if (isOutage(error)) next(at)
      throw error
    }
    const opened = call.opened.catch(onError)
    opened.catch(() => {})
    return {
      send: (message: object) => call.send(method.request.encode(message)),
      opened,
      messages: decoded<Response>(call, method, onError),
    }
  }
  return {
    connectAll: async (signal) => {
      const outcomes = await Promise.allSettled(members.map(({ connection }) => connection.ready(signal)))
      for (const outcome of outcomes) if (outcome.status === 'rejected' && outcome.reason instanceof OtherClusterError) throw outcome.reason
      current = Math.max(
        outcomes.findIndex(({ status }) => status === 'fulfilled'),
        0,
      )
    },
    call,
    duplex,
    hasSoundProgress: () => members.every(({ version }) => version === undefined || hasSoundProgress(version)),
    close: () => {
      for (const { connection } of members) connection.close()
    },
  }
}

async function* decoded<Response>(call: DuplexCall, method: ServiceMethod, onError: (error: unknown) => never): AsyncGenerator<Response> {
  try {
    for await (const message of call.messages) yield method.response.decode(message) as Response
  } catch (error) {
    onError(error)
  }
}

/** Waits for one answer of a call in both directions, at most `timeoutMs`. */
export async function firstAnswer<Response>(endpoints: Endpoints, method: string, request: object, clock: Clock, signal: AbortSignal): Promise<Response> {
  using scope = deadlineScope({ clock, ms: callTimeoutMs, reason: () => new GrpcError('DEADLINE_EXCEEDED', 'context deadline exceeded') }, signal)
  const call = endpoints.duplex<Response>(method, scope.signal)
  call.send(request)
  for await (const answer of call.messages) return answer
  scope.signal.throwIfAborted()
  throw new GrpcError('UNAVAILABLE', 'the call ended without an answer')
}
