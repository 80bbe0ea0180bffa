/**
 * Posts JSON to a webhook over TLS (L3). Errors read like those of Go's client, because they end up in front of users.
 * Upstream: apiserver/pkg/util/webhook/client.go.
 */
import { request as httpsRequest } from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import { rootCertificates } from 'node:tls'

export interface WebhookTarget {
  readonly url: string
  /** Where to go instead of the URL's host, whose name the certificate must have. */
  readonly address?: (() => { readonly host: string; readonly port: number }) | undefined
  /** PEM; absent: the system's. */
  readonly ca?: string | undefined
}

export interface PostOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** More than any sensible answer. */
const answerBytes = 64 * 1024 * 1024

/** The answer's JSON. @throws Error with what went wrong, in one line */
export async function postJson(target: WebhookTarget, body: unknown, options: PostOptions): Promise<unknown> {
  const url = `${target.url}?timeout=${options.timeoutMs / 1000}s`
  try {
    const { status, text } = await post(target, new URL(url), JSON.stringify(body), options)
    if (status < 200 || status > 299) throw new Error(text.trim() || `the server answered with status ${status}`)
    return parse(text)
  } catch (error) {
    if (error instanceof AnswerError) throw error
    throw new Error(`Post ${JSON.stringify(url)}: ${(error as Error).message}`, { cause: error })
  }
}

class AnswerError extends Error {}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AnswerError(`couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
}

function post(target: WebhookTarget, url: URL, body: string, { timeoutMs, signal }: PostOptions): Promise<{ status: number; text: string }> {
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const { host, port } = target.address?.() ?? { host: name, port: Number(url.port || 443) }
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({
      method: 'POST',
      host,
      port,
      path: `${url.pathname}${url.search}`,
      servername: /^[\d.]+$|:/.test(name) ? '' : name,
      headers: { host: url.host, 'content-type': 'application/json', accept: 'application/json, */*', 'content-length': Buffer.byteLength(body) },
      ca: target.ca ?? [...rootCertificates],
      agent: false,
      signal: signal ? AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) : AbortSignal.timeout(timeoutMs),
    })
    outgoing.on('error', (error) => reject(new Error(goError(error, host, port), { cause: error })))
    outgoing.on('response', (response) => {
      const decoder = new StringDecoder('utf8')
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += decoder.write(chunk)
        if (text.length > answerBytes) outgoing.destroy(new Error('the answer is too large'))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: text + decoder.end() }))
      response.on('error', reject)
    })
    outgoing.end(body)
  })
}

/** Go's words for what Node reports by code. */
function goError(error: Error, host: string, port: number): string {
  const { code = '', name } = error as Error & { code?: string }
  if (name === 'TimeoutError' || name === 'AbortError') return 'context deadline exceeded'
  if (code === 'ECONNREFUSED') return `dial tcp ${host}:${port}: connect: connection refused`
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${host}: no such host`
  if (code === 'ECONNRESET') return `read tcp ${host}:${port}: read: connection reset by peer`
  if (untrusted.has(code)) return 'tls: failed to verify certificate: x509: certificate signed by unknown authority'
  if (code === 'CERT_HAS_EXPIRED') return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `tls: failed to verify certificate: x509: ${error.message}`
  return error.message
}

const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])
