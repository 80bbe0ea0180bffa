/**
 * A webhook server over TLS for tests: gives the answers that the test sets by path, and records the requests. It listens on loopback only.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { WebhookClientConfig } from '#api/gen/types/admissionregistration.v1'
import { testCertificates } from '#testing/testCertificates'

/** Any JSON, looked into freely. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into free-form objects
export type Json = any

export interface WebhookRequest {
  /** With its query. */
  readonly url: string
  readonly review: Json
  /** The body as it came. */
  readonly text: string
  readonly headers: IncomingHttpHeaders
  /** The common name of the client's certificate, whichever authority signed it. */
  readonly peer: string | undefined
}

/** The response of the review; or the whole answer, if a test needs another one; or 'hang'. */
export type Respond = (request: Json, url: string) => Json | RawAnswer | 'hang'

export class RawAnswer {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  constructor(status: number, body: string, headers: Readonly<Record<string, string>> = {}) {
    this.status = status
    this.body = body
    this.headers = headers
  }
}

export interface WebhookServer {
  readonly port: number
  /** PEM. */
  readonly ca: string
  readonly asked: WebhookRequest[]
  /** How many connections were opened. */
  connections(): number
  /** Closes those that are open. */
  dropConnections(): void
  /** What answers at a path; also replaces. */
  on(path: string, respond: Respond): void
  client(path: string): WebhookClientConfig
  /** Asks that came to a path since the test began. */
  askedAt(path: string): Json[]
  close(): Promise<void>
}

export async function startWebhookServer(hosts: readonly string[] = []): Promise<WebhookServer> {
  const { cert, key } = await testCertificates('CN=hooks', hosts)
  const responders = new Map<string, Respond>()
  const asked: WebhookRequest[] = []
  let connections = 0
  const server: Server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const review = text === '' ? undefined : JSON.parse(text)
      const url = request.url ?? ''
      asked.push({ url, review, text, headers: request.headers, peer: (request.socket as TLSSocket).getPeerCertificate().subject?.CN as string | undefined })
      const answer = responders.get(url.split('?')[0] ?? '')?.(review?.request, url)
      if (answer === 'hang') return
      if (answer instanceof RawAnswer) response.writeHead(answer.status, answer.headers).end(answer.body)
      else if (!answer) response.writeHead(404).end()
      else {
        const { apiVersion, kind } = review
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ apiVersion, kind, response: { uid: review.request.uid, ...answer } }))
      }
    })
  })
  server.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    ca: cert,
    asked,
    connections: () => connections,
    dropConnections: () => server.closeAllConnections(),
    on: (path, respond) => void responders.set(path, respond),
    client: (path) => ({ url: `https://127.0.0.1:${port}${path}`, caBundle: Buffer.from(cert).toString('base64') }),
    askedAt: (path) => asked.filter(({ url }) => url.split('?')[0] === path).map(({ review }) => review.request),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export const jsonPatch = (operations: readonly object[]): object => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
})
