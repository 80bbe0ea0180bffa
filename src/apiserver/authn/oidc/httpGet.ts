/**
 * Gets documents of issuers over HTTPS (L3): bounded in time and size, through a few redirects, connections kept.
 * Upstream: Go's http.Client with its default transport and a time-out of 30 seconds.
 */
import { type Agent, request } from 'node:https'
import { rootCertificates } from 'node:tls'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { TrustingHttpsAgent } from '../../core/serverTrust.ts'

export interface HttpAnswer {
  readonly status: number
  /** `404 Not Found`. */
  readonly statusText: string
  readonly text: string
}

/** @throws Error with what went wrong, in one line */
export type HttpGet = (url: string, headers?: Readonly<Record<string, string>>) => Promise<HttpAnswer>

const timeoutMs = 30_000
const mostBytes = 4 * 1024 * 1024
const mostRedirects = 10

/** @param certificateAuthority PEM; absent: the system's */
export function createHttpGet(certificateAuthority: string | undefined, clock: Clock, signal: AbortSignal): HttpGet {
  const agent = new TrustingHttpsAgent({ keepAlive: true, maxSockets: 8, ca: certificateAuthority ?? [...rootCertificates] })
  signal.addEventListener('abort', () => agent.destroy(), { once: true })
  return async (url, headers = {}) => {
    using limit = deadlineScope({ clock, ms: timeoutMs }, signal)
    let at = url
    for (let redirects = 0; redirects <= mostRedirects; redirects++) {
      const isFirstHost = new URL(at).host === new URL(url).host
      const { location, ...answer } = await getOnce(at, { agent, signal: limit.signal, headers: isFirstHost ? headers : {} })
      if (location === undefined) return answer
      at = new URL(location, at).href
    }
    throw new Error(`Get ${JSON.stringify(url)}: stopped after ${mostRedirects} redirects`)
  }
}

interface GetOptions {
  readonly agent: Agent
  readonly signal: AbortSignal
  readonly headers: Readonly<Record<string, string>>
}

function getOnce(url: string, options: GetOptions): Promise<HttpAnswer & { readonly location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new Error(`Get ${JSON.stringify(url)}: ${error.message}`, { cause: error }))
    if (!url.startsWith('https:')) {
      fail(new Error('unsupported protocol scheme'))
      return
    }
    const outgoing = request(url, options)
    outgoing.on('error', fail)
    outgoing.on('response', (response) => {
      const { statusCode = 0, statusMessage = '', headers } = response
      const parts: Buffer[] = []
      let size = 0
      response.on('data', (part: Buffer) => {
        size += part.length
        if (size > mostBytes) outgoing.destroy(new Error('the answer is too large'))
        else parts.push(part)
      })
      response.on('error', fail)
      response.on('end', () => {
        const isRedirect = statusCode >= 301 && statusCode <= 308 && statusCode !== 304
        const location = isRedirect ? headers.location : undefined
        resolve({ status: statusCode, statusText: `${statusCode} ${statusMessage}`, text: Buffer.concat(parts).toString('utf8'), location })
      })
    })
    outgoing.end()
  })
}
