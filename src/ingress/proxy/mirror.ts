/**
 * Copies of a request for other backends (L3), whose answers are dropped. The request never waits for a mirror: one that takes its copy too slowly, or is silent
 * for too long, is cut off.
 */
import type { ClientRequest as BackendRequest } from 'node:http'
import type { Readable } from 'node:stream'
import type { BackendRef, Mirror } from '../model/route.ts'
import { requestTo } from './backendRequest.ts'
import type { RawHeaders } from './headers.ts'
import type { ProxyDeps } from './proxyDeps.ts'

/** Bytes that a mirror has not taken yet. */
const maxWaiting = 1024 * 1024

export interface Mirrors {
  /** Ends the copies with their body, if there is one. */
  send(body: Readable | undefined): void
  /** Cuts those off whose body is not whole: nothing more of it comes. */
  abandon(): void
}

interface Copied {
  readonly method: string | undefined
  readonly path: string
  readonly headers: RawHeaders
}

export function startMirrors(deps: ProxyDeps, mirrors: readonly Mirror[], copied: Copied): Mirrors {
  const requests = mirrors.flatMap(({ backend }) => startOne(deps, backend, copied) ?? [])
  const end = () => {
    for (const one of requests) one.end()
  }
  return {
    send: (body) => {
      if (!body) {
        end()
        return
      }
      body.once('end', end)
      body.on('data', (chunk: Buffer) => {
        for (const one of requests) {
          if (one.writableLength > maxWaiting) one.destroy()
          else one.write(chunk)
        }
      })
    },
    abandon: () => {
      for (const one of requests) if (!one.writableEnded) one.destroy()
    },
  }
}

function startOne(deps: ProxyDeps, ref: BackendRef, { method, path, headers }: Copied): BackendRequest | undefined {
  if (ref.tls === 'unverifiable') return undefined
  const { limits, router } = deps
  const backend = router.backendOf(ref)
  const endpoint = backend.inFlight < limits.maxInFlight ? backend.pick() : undefined
  if (!endpoint) return undefined
  let outgoing: BackendRequest
  try {
    outgoing = requestTo(deps, endpoint, ref.tls, { method, path, headers, isFresh: false })
  } catch {
    return undefined
  }
  backend.inFlight++
  outgoing.setTimeout(limits.readTimeoutMs, () => outgoing.destroy())
  outgoing.on('response', (answer) => answer.on('error', () => {}).resume())
  outgoing.on('upgrade', (_answer, socket) => socket.destroy())
  outgoing.on('error', () => {})
  outgoing.once('close', () => {
    backend.inFlight--
  })
  return outgoing
}
