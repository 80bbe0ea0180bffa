/**
 * A port of the service proxy (L5): plain HTTP without authentication, as upstream's. An address that cannot be bound is logged and tried again, or ends the
 * proxy. Upstream: serveHealthz and serveMetrics of cmd/kube-proxy/app/server.go (v1.36).
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { aborted } from '#base/orAborted'

export interface PlainAnswer {
  readonly status: number
  readonly type: string
  readonly body: string | Uint8Array
}

export interface PortAddress {
  readonly host: string
  readonly port: number
}

export interface PlainPortOptions {
  /** In the log. */
  readonly name: string
  readonly address: PortAddress
  readonly clock: Clock
  readonly log: Logger
  answer(path: string, request: IncomingMessage): Promise<PlainAnswer | undefined> | PlainAnswer | undefined
  /** Called when the address cannot be bound; absent: tried again. */
  readonly onFailed?: ((error: Error) => void) | undefined
}

const againMs = 5000
/** Every pod reaches the port of health, whose process runs the node. */
const mostConnections = 256
/** For a request, whole. */
const requestMs = 10_000
const notFound: PlainAnswer = { status: 404, type: 'text/plain; charset=utf-8', body: '404 page not found\n' }

/** `listening` resolves with the port. */
export function plainPort(options: PlainPortOptions): Component & { readonly listening: Promise<number> } {
  const { name, address, clock, log, onFailed } = options
  let markListening = (_port: number) => {}
  const listening = new Promise<number>((resolve) => {
    markListening = resolve
  })
  return {
    name,
    listening,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await serve(options, markListening, signal)
        } catch (error) {
          log.error(error as Error, 'A port cannot be served', { name, address: `${address.host}:${address.port}` })
          onFailed?.(error as Error)
          await clock.sleep(againMs, signal).catch(() => {})
        }
      }
    },
  }
}

/** Until the signal aborts. @throws Error when the address cannot be bound */
async function serve({ address, answer, log }: PlainPortOptions, onPort: (port: number) => void, signal: AbortSignal): Promise<void> {
  const limits = { requestTimeout: requestMs, headersTimeout: requestMs, connectionsCheckingInterval: requestMs / 2, maxHeaderSize: 8192 }
  const server = createServer(limits, async (request, response) => {
    const path = request.url?.split('?')[0] ?? ''
    try {
      const { status, type, body } = (await answer(path, request)) ?? notFound
      response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(request.method === 'HEAD' ? undefined : body)
    } catch (error) {
      log.error(error as Error, 'A request failed', { path })
      response.writeHead(500).end()
    }
  })
  server.maxConnections = mostConnections
  server.listen(address)
  await once(server, 'listening')
  onPort((server.address() as { port: number }).port)
  await aborted(signal)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
