/**
 * Posts JSON to a webhook over TLS (L3). Errors read like those of Go's client, because users see them.
 * Upstream: apiserver/pkg/util/webhook/client.go.
 */

import { type Agent, request as httpsRequest } from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import { checkServerIdentity, type PeerCertificate, rootCertificates } from 'node:tls'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseJson } from '#api/machinery/json'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { endingWith, httpsAgent, type Reach } from '../backends/reach.ts'
import { weakSignature } from '../core/serverTrust.ts'

export interface WebhookTarget {
  readonly url: string
  /** Where to go instead of the URL's host, whose name the certificate must have. */
  readonly address?: (() => { readonly host: string; readonly port: number }) | undefined
  /** PEM; absent: the system's. */
  readonly ca?: string | undefined
  /** The server's credentials; absent: it sends none. */
  readonly identity?: WebhookIdentity | undefined
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** Connections that are kept for the next call, made as `reach` says; absent: each call has its own. */
  readonly pool?: Agent | undefined
}

/** Loads the credentials; called for each request. */
export type WebhookIdentity = () => Promise<{
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** PEM; both or none. */
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
}>

export interface PostOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** More headers, such as a trace's context. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Default: more than any sensible answer. */
  readonly maxAnswerBytes?: number | undefined
}

export interface WebhookAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

/** JSON of this size is parsed in one turn of the event loop. */
const defaultAnswerBytes = 16 * 1024 * 1024
/** Characters of a webhook's error that a message quotes; upstream's bound. */
const maxErrorText = 2048
/** As Go's transport. */
const idleConnectionMs = 90_000

const ownHeaders = { 'content-type': 'application/json', accept: 'application/json, */*', 'user-agent': 'kube-apiserver-admission' }

/** Connections to one target. They do not keep the process alive. */
export function createWebhookPool(reach?: Reach): Agent {
  return httpsAgent(reach, { keepAlive: true, maxFreeSockets: 100, timeout: idleConnectionMs, scheduling: 'lifo' })
}

/** Lets idle connections go; those in use end with their calls. */
export function retireWebhookPool(pool: Agent): void {
  pool.maxFreeSockets = 0
  for (const sockets of Object.values(pool.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

/** The answer's JSON. @throws Error with what went wrong, in one line */
export async function postJson(target: WebhookTarget, body: unknown, options: PostOptions): Promise<unknown> {
  const { status, text } = await postText(target, stringifyExactly(body), options)
  if (status < 200 || status > 299)
    throw postError(target, options, new Error(text.trim().slice(0, maxErrorText) || `the server answered with status ${status}`))
  return parseAnswer(text)
}

/** @throws Error in the words of Go's decoder */
export function parseAnswer(text: string): unknown {
  try {
    return parseJson(text).value
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
}

/** What the webhook answered, whatever its status; redirects are not followed. @throws Error in the words of Go's client */
export async function postText(target: WebhookTarget, body: string, options: PostOptions): Promise<WebhookAnswer> {
  try {
    return await post(target, body, options)
  } catch (error) {
    // The other side closed a kept connection just when it was taken: as Go, try on a new one.
    const isStale = error instanceof StaleConnection
    try {
      if (isStale) return await post({ ...target, pool: undefined }, body, options)
      throw error
    } catch (second) {
      throw postError(target, options, second as Error)
    }
  }
}

class StaleConnection extends Error {}

const urlOf = ({ url }: WebhookTarget, { timeoutMs }: PostOptions): string => `${url}?timeout=${timeoutMs / 1000}s`

function postError(target: WebhookTarget, options: PostOptions, error: Error): Error {
  return new Error(`Post ${JSON.stringify(urlOf(target, options))}: ${error.message}`, { cause: error })
}

async function post(target: WebhookTarget, body: string, options: PostOptions): Promise<WebhookAnswer> {
  const { clock, timeoutMs, maxAnswerBytes = defaultAnswerBytes } = options
  const url = new URL(urlOf(target, options))
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const { host, port } = target.address?.() ?? { host: name, port: Number(url.port || 443) }
  const { headers, cert, key } = (await target.identity?.()) ?? { headers: {} }
  using limit = deadlineScope({ clock, ms: timeoutMs }, options.signal)
  return await new Promise((resolve, reject) => {
    const outgoing = httpsRequest({
      method: 'POST',
      host,
      port,
      path: `${url.pathname}${url.search}`,
      servername: /^[\d.]+$|:/.test(name) ? '' : name,
      headers: { host: url.host, ...ownHeaders, ...options.headers, ...(headers as Record<string, string>), 'content-length': Buffer.byteLength(body) },
      ca: target.ca ?? [...rootCertificates],
      checkServerIdentity: checkNames,
      ...(cert ? { cert, key } : {}),
      agent: target.pool ?? httpsAgent(target.reach),
      ...endingWith(limit.signal),
    })
    let answered = false
    outgoing.on('error', (error: Error & { code?: string }) => {
      if (outgoing.reusedSocket && !answered && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) reject(new StaleConnection(error.message))
      else reject(new Error(goError(error, host, port), { cause: error }))
    })
    outgoing.on('response', (response) => {
      answered = true
      const decoder = new StringDecoder('utf8')
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += decoder.write(chunk)
        if (text.length > maxAnswerBytes) outgoing.destroy(new Error('the answer is too large'))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, contentType: response.headers['content-type'] ?? '', text: text + decoder.end() }))
      response.on('error', (error) => reject(new Error(goError(error, host, port), { cause: error })))
    })
    outgoing.end(body)
  })
}

/** A server whose certificate names it in its subject only, which Go does not accept any more. */
class LegacyCommonName extends Error {
  constructor() {
    super('certificate relies on legacy Common Name field, use SANs instead')
  }
}

function checkNames(host: string, certificate: PeerCertificate): Error | undefined {
  return checkServerIdentity(host, certificate) ?? (certificate.subjectaltname ? undefined : new LegacyCommonName())
}

/** Why a server's certificate is deprecated, as upstream names it. */
export type DeprecatedCertificate = 'missing-san' | 'insecure-sha1'

/** Whether a call came to nothing because of a certificate that was taken once. */
export function deprecatedCertificate(error: unknown): DeprecatedCertificate | undefined {
  if (error instanceof LegacyCommonName) return 'missing-san'
  if (!(error instanceof Error)) return undefined
  return error.message === weakSignature ? 'insecure-sha1' : deprecatedCertificate(error.cause)
}

/** Go's words for what Node reports by code. */
function goError(error: Error, host: string, port: number): string {
  const { code = '', name } = error as Error & { code?: string }
  if (name === 'TimeoutError' || name === 'AbortError') return 'context deadline exceeded'
  if (code === 'ECONNREFUSED') return `dial tcp ${host}:${port}: connect: connection refused`
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${host}: no such host`
  if (code === 'ECONNRESET') return `read tcp ${host}:${port}: read: connection reset by peer`
  if (untrusted.has(code) || error.message === weakSignature) return 'tls: failed to verify certificate: x509: certificate signed by unknown authority'
  if (code === 'INVALID_PURPOSE') return 'tls: failed to verify certificate: x509: certificate specifies an incompatible key usage'
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || error instanceof LegacyCommonName) return `tls: failed to verify certificate: x509: ${error.message}`
  return error.message
}

const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])
