/** A request as it arrives over HTTP/2 (tests only). */
import { Cancellation } from './cancellation.ts'
import type { ServerRequest } from './request.ts'

export interface Sent {
  readonly method?: string
  readonly url?: string
  readonly headers?: ServerRequest['headers']
}

export function requestOf({ method = 'GET', url = '/api/v1/namespaces/a/pods/p', headers = {} }: Sent = {}): ServerRequest {
  const [path = '', query] = url.split('?')
  return {
    ...{ method, path, query: new URLSearchParams(query), headers, remoteAddress: '192.0.2.7', isHttp2: true, responseHeaders: {}, receivedMs: 0 },
    ...{ cancellation: new Cancellation(), warnings: [], readBody: () => Promise.resolve({ type: 'value', value: undefined, contentType: '' }) },
  }
}
