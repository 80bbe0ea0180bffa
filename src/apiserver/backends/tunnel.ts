/**
 * Hands a client's connection over to a backend that has agreed to switch to the protocol that the client asked for (L3): byte for byte, so it
 * does not matter whether that is SPDY or WebSocket. Before the backend's 101 nothing that follows the client's head is sent on, and any other
 * answer is an ordinary one after which both connections end. A joined connection would carry the client's next requests to the backend with
 * this server's credentials (CVE-2018-1002105).
 * Upstream: apimachinery/pkg/util/proxy/upgradeaware.go (tryUpgrade), net/http/httputil (handleUpgradeResponse).
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { readEarly } from '#http/earlyInput'
import { hangUp } from '#streaming/hangUp'
import type { Answer, BytesAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Backend, ForwardedRequest } from './backend.ts'
import { dial } from './connect.ts'
import { responseHeaders } from './forwardedHeaders.ts'
import { readBody } from './readBody.ts'
import { requestUpgrade, type UpgradeAnswer } from './upgradeRequest.ts'

/** Longer than a kubelet waits for its container runtime (2 minutes). Upstream waits without end. */
const answerTimeoutMs = 180_000
/** Upstream's deadline for the body of a refusal. */
const refusalTimeoutMs = 10_000
const maxRefusalBytes = 1024 * 1024

type Switched = Extract<UpgradeAnswer, { type: 'switched' }>

/** How a connection is carried whose backend speaks another protocol than its client. */
export interface Carrier {
  /** Goes to the backend in place of the client's request. */
  readonly request: ForwardedRequest
  /**
   * Answers the client after the backend has switched. @param early what the client has sent so far @returns what carries the backend's bytes
   * @throws StatusError when the client is not answered
   */
  accept(socket: Duplex, early: Buffer, answered: Switched): Promise<Duplex>
}

export function tunnel(request: ServerRequest, backend: Backend, carrier: Carrier = plain(request)): Answer {
  return {
    type: 'tunnel',
    async connect(socket, head, clock) {
      const waiting = new AbortController()
      const gone = () => waiting.abort(new Error('the client went away'))
      socket.once('close', gone)
      if (socket.destroyed) gone()
      const early = readEarly(socket, (error) => waiting.abort(error))
      const upstream = await dial(backend, waiting.signal, request.user?.name).catch((error) => {
        early.end()
        throw error
      })
      waiting.signal.addEventListener('abort', () => upstream.destroy(waiting.signal.reason), { once: true })
      const late = clock.timer(answerTimeoutMs, () => waiting.abort(new Error(`no answer within ${answerTimeoutMs / 1000} seconds`)))
      const answered = await requestUpgrade(carrier.request, backend, upstream).finally(() => late.cancel())
      const sentEarly = early.end()
      if (answered.type === 'refused') return refusalOf(request, answered.response, upstream, clock)
      socket.removeListener('close', gone)
      const carried = await carrier.accept(socket, Buffer.concat([head, sentEarly]), answered).catch((error) => {
        upstream.destroy()
        throw error
      })
      if (answered.rest.length > 0) carried.write(answered.rest)
      await join(carried, upstream, clock)
      return undefined
    },
  }
}

/** Client and backend speak the same protocol: the client gets the backend's answer. */
function plain(request: ServerRequest): Carrier {
  return {
    request,
    accept: async (socket, early, { head }) => {
      socket.write(head)
      if (early.length > 0) socket.unshift(early)
      return socket
    },
  }
}

/** A backend's answer that does not switch protocols, whole. The connection to the backend is over. @throws StatusError 500 for one that is no refusal either */
async function refusalOf({ method }: ServerRequest, response: IncomingMessage, upstream: Duplex, clock: Clock): Promise<BytesAnswer> {
  const status = response.statusCode ?? 0
  const timer = clock.timer(refusalTimeoutMs, () => upstream.destroy())
  try {
    if (status < 400) throw new StatusError('', `invalid upgrade response: status code ${status}`)
    const bytes = await readBody(response, maxRefusalBytes)
    const { 'content-type': contentType = '', 'content-length': announced, ...headers } = responseHeaders(response.headers)
    const ofHead = method === 'HEAD' && announced !== undefined ? { 'content-length': announced } : {}
    return { type: 'bytes', status, contentType: String(contentType), bytes, headers: { ...headers, ...ofHead } }
  } catch (error) {
    if (error instanceof StatusError) throw error
    throw new StatusError('', `error reading the upgrade response: ${(error as Error).message}`, { cause: error })
  } finally {
    timer.cancel()
    upstream.destroy()
  }
}

/** Copies both ways until both ends are closed. When one end closes, the other one gets what is left and a bounded time to take it. */
function join(a: Duplex, b: Duplex, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    let open = 2
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const closed = () => {
        // A connection that was reset may have received more than the other one has taken.
        const left: Buffer | null = from.read()
        if (left !== null && to.writable) to.write(left)
        to.unpipe(from)
        hangUp(to, clock)
        if (--open === 0) resolve()
      }
      from.pipe(to)
      // It is closed after that.
      from.on('error', () => {})
      if (from.destroyed) closed()
      else from.on('close', closed)
    }
  })
}
