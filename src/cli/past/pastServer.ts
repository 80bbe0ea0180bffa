/**
 * A read-only API of the past on localhost (L4): passes reads on to the live server, as reads of one revision, with the credentials of the user who started it.
 * The live server decides what the user may read, by the rights of now. Requests without the token of this server are refused.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseExactly } from '#api/machinery/json'
import { StatusError } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import type { HttpAnswer, HttpCall } from '#client/httpConnection'
import type { HttpTransport } from '#client/httpTransport'
import { objectOfList, type PastPlan, planPast, revisionIn, withoutHistory } from './pastRequest.ts'

export interface PastServerOptions {
  readonly transport: Pick<HttpTransport, 'forward'>
  readonly revision: number
  /** PEM, for 127.0.0.1. */
  readonly certificate: { readonly cert: string; readonly key: string }
}

export interface PastServer {
  readonly url: string
  readonly token: string
  /** Whether a read was answered with Expired: the revision was compacted meanwhile. */
  readonly hasExpired: boolean
  close(): Promise<void>
}

const mostConnections = 100
const mostObjectBytes = 16 * 2 ** 20
/** The revision of a list stands in its first bytes. */
const mostHeadBytes = 64 * 1024

export async function servePast({ transport, revision, certificate }: PastServerOptions): Promise<PastServer> {
  const token = randomBytes(32).toString('base64url')
  let hasExpired = false
  const server = https.createServer({ ...certificate, maxHeaderSize: 64 * 1024 }, (request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    answer(request, response, { transport, revision, token, signal: gone.signal }).catch((error: unknown) => {
      hasExpired ||= error instanceof StatusError && error.code === 410
      fail(response, error)
    })
  })
  server.maxConnections = mostConnections
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    get hasExpired() {
      return hasExpired
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface Reading extends Pick<PastServerOptions, 'transport' | 'revision'> {
  readonly token: string
  readonly signal: AbortSignal
}

async function answer(request: IncomingMessage, response: ServerResponse, reading: Reading): Promise<void> {
  // Bodies are not read: every request that has one is refused.
  request.resume()
  if (!isAuthorized(request.headers.authorization, reading.token)) throw new StatusError('Unauthorized', 'Unauthorized')
  const { method = '', url = '/', headers } = request
  const plan = planPast({ method, target: url, accept: headers.accept }, reading.revision)
  const live = await reading.transport.forward({ method, target: plan.target, headers: passedOn(request, plan), body: undefined }, reading.signal)
  if (live.status !== 200 || plan.type === 'pass') {
    if (live.status === 410) throw StatusError.fromStatus(JSON.parse((await allOf(live)).toString()), 410)
    response.writeHead(live.status, headersOf(live))
    await pipeline(live.body, response)
  } else if (plan.type === 'object') {
    const object = objectOfList(parseExactly(await allOf(live)), plan.object, reading.revision)
    response.writeHead(200, headersOf(live)).end(stringifyExactly(object))
  } else await passList(live, response, plan.resource, reading.revision)
}

/** @throws StatusError MethodNotAllowed when the list is of another revision; no part of it has been passed on */
async function passList(live: HttpAnswer, response: ServerResponse, resource: string, revision: number): Promise<void> {
  const parts = live.body[Symbol.asyncIterator]()
  const head: Buffer[] = []
  let known: number | undefined
  for (let bytes = 0; known === undefined && bytes < mostHeadBytes; ) {
    const { value, done } = await parts.next()
    if (done) break
    head.push(value as Buffer)
    bytes += (value as Buffer).length
    known = revisionIn(Buffer.concat(head).subarray(0, mostHeadBytes).toString('latin1'))
  }
  if (known !== revision) {
    live.body.destroy()
    throw withoutHistory(resource)
  }
  response.writeHead(200, headersOf(live))
  await pipeline(async function* () {
    yield* head
    for (let part = await parts.next(); !part.done; part = await parts.next()) yield part.value
  }, response)
}

function isAuthorized(header: string | undefined, token: string): boolean {
  const [given, wanted] = [Buffer.from(header ?? ''), Buffer.from(`Bearer ${token}`)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

/** The accepted form and the impersonated user; the live server decides whether impersonation is allowed. */
function passedOn({ headersDistinct: headers }: IncomingMessage, { accept }: PastPlan): HttpCall['headers'] {
  const named = Object.entries(headers).flatMap(([name, values]) =>
    values && (name === 'user-agent' || name.startsWith('impersonate-')) ? [[name, values] as const] : [],
  )
  return { ...Object.fromEntries(named), accept }
}

function headersOf({ headers }: HttpAnswer): Record<string, string | string[]> {
  const named = ['content-type', 'warning', 'retry-after', 'audit-id', 'etag', 'vary'].flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [[name, typeof value === 'string' ? value : [...value]] as const]
  })
  return Object.fromEntries(named)
}

async function allOf(live: HttpAnswer): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of live.body) {
    bytes += (part as Buffer).length
    if (bytes > mostObjectBytes) throw new StatusError('RequestEntityTooLarge', `the answer is larger than ${mostObjectBytes} bytes`)
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const status = error instanceof StatusError ? error : new StatusError('ServiceUnavailable', `the cluster does not answer: ${messageOf(error)}`)
  // A token that continues in the newest state would mix it with the past.
  const { metadata: _, ...rest } = status.toStatus()
  response.writeHead(status.code, { 'content-type': 'application/json' }).end(JSON.stringify({ ...rest, metadata: {} }))
}
