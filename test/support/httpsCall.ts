/** One HTTPS request as any client would make it: with a certificate or headers of the test's choice, on a connection of its own. */
import { request } from 'node:https'

export interface HttpsCall {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** PEM: the client's certificate. */
  readonly cert?: string
  readonly key?: string
  /** Sent as JSON. */
  readonly body?: unknown
}

export interface HttpsAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind, looked into by tests
  readonly json: any
}

/** @param server where, and whose certificate to trust */
export function httpsCall(server: { readonly url: string; readonly ca: string }, path: string, call: HttpsCall = {}): Promise<HttpsAnswer> {
  const { method = call.body === undefined ? 'GET' : 'POST', headers = {}, cert, key, body } = call
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const outgoing = request(`${server.url}${path}`, {
      method,
      ca: server.ca,
      agent: false,
      ...(cert ? { cert, key } : {}),
      // For DELETE node adds no length of its own.
      headers: {
        ...(sent ? { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(sent)) } : {}),
        ...(headers as Record<string, string>),
      },
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) }))
    })
    outgoing.end(sent)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
