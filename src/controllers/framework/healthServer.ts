/**
 * The health port of a process of controllers (L3): /healthz while it runs, /readyz when its caches are filled, /metrics.
 * Upstream: controller-runtime/pkg/healthz, pkg/metrics/server.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Exposition } from '#base/exposition'

export interface HealthServer {
  readonly port: number
  close(): Promise<void>
}

export async function serveHealth(
  at: { readonly port: number; readonly host?: string | undefined; readonly onListening?: ((port: number) => void) | undefined },
  answers: { ready(): boolean; metrics(accept: string | undefined): Exposition },
): Promise<HealthServer> {
  const server = http.createServer((request, answer) => {
    const say = (code: number, body: Exposition['body'], type = 'text/plain; charset=utf-8') => answer.writeHead(code, { 'content-type': type }).end(body)
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/healthz') say(200, 'ok')
    else if (pathname === '/readyz') answers.ready() ? say(200, 'ok') : say(500, 'caches are not filled yet')
    else if (pathname === '/metrics') {
      const { body, contentType } = answers.metrics(request.headers.accept)
      say(200, body, contentType)
    } else say(404, 'not found')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at.port, at.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  at.onListening?.(port)
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
