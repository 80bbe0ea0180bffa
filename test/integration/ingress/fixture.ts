/** A proxy over real sockets of the loopback interface, with backends and clients. */
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type tls from 'node:tls'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import type { Asked, Route, StreamRoute } from '#ingress/model/route'
import { Backend } from '#ingress/proxy/backend'
import type { ProxyLimits } from '#ingress/proxy/config'
import { type RunningProxy, startProxy } from '#ingress/proxy/proxy'
import { realClock as clock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'

export const host = '127.0.0.1'
const ingressRoute = { backend: { service: 'd/s', port: 80 } }

/** Called after the tests. */
export const ends: (() => unknown)[] = []

/** A backend's server with its port, ended after the tests. */
export async function serverOf(handler: http.RequestListener): Promise<{ server: http.Server; port: number }> {
  const server = http.createServer(handler)
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as net.AddressInfo).port }
}

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

let certificate: ReturnType<typeof testCertificates> | undefined

interface Fixture {
  readonly proxy: RunningProxy
  readonly backend: Backend
  readonly contexts: Map<string, tls.SecureContext>
  /** By server name, where connections go. */
  readonly streams: Map<string, StreamRoute>
}

export async function proxyTo(ports: readonly number[], limits: Partial<ProxyLimits> = {}, route: Route = ingressRoute): Promise<Fixture> {
  const backend = new Backend(clock)
  backend.setEndpoints(ports.map((port) => ({ ip: host, port })))
  const contexts = new Map<string, tls.SecureContext>()
  const streams = new Map<string, StreamRoute>()
  const router = {
    route: ({ host: name }: Asked) => (name === 'unknown.test' ? 404 : route),
    stream: (name: string) => streams.get(name),
    backendOf: () => backend,
  }
  certificate ??= testCertificates('CN=default')
  const proxy = await startProxy(
    { router, clock, log: noLog, metrics: noMetrics },
    {
      http: { host, port: 0, publicPort: 80 },
      https: { host, port: 0, publicPort: 443 },
      tls: { ...(await certificate), contextOf: (name) => contexts.get(name) },
      limits: { drainMs: 1500, ...limits },
    },
  )
  ends.push(() => proxy.close())
  return { proxy, backend, contexts, streams }
}

interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

export async function get(port: number, options: http.RequestOptions = {}, body?: string): Promise<Answer> {
  const request = (options.protocol === 'https:' ? https : http).request({ host, port, agent: false, ...options })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await textOf(response) }
}

export async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** What a raw request gets until the connection ends. */
export async function raw(port: number, text: string): Promise<string> {
  const socket = net.connect(port, host)
  socket.on('error', () => {})
  socket.write(text)
  return textOf(socket)
}

export const echo: http.RequestListener = (request, response) => {
  response.setHeader('content-type', 'application/json')
  const end = (body: string) => response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }))
  textOf(request).then(end, () => response.destroy())
}
