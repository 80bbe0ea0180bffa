/** Plain HTTPS requests, for what no client library shows: codes, headers, bytes. */
import { request } from 'node:https'
import type { TestListener } from '#testing/apiServer'

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

export interface RawRequest {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Default: the listener's own; empty: none. */
  readonly token?: string
}

/** HTTP/1.1, one connection each. */
export function rawHttp(listener: TestListener, { method = 'GET', path, headers = {}, body, token = listener.token }: RawRequest): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port: listener.port,
        path,
        method,
        ca: listener.ca,
        agent: false,
        headers: {
          ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }))
        response.on('error', reject)
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

/** The first lines of an answer that may have no end. @throws when it ends before them */
export function rawLines({ port, ca, token }: TestListener, { path, headers = {} }: RawRequest, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, ca, agent: false, headers: { authorization: `Bearer ${token}`, ...headers } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
        const lines = text.split('\n')
        if (lines.length <= count) return
        resolve(lines.slice(0, count))
        call.destroy()
      })
      response.on('end', () => reject(new Error(`it ended after ${text}`)))
    })
    call.on('error', reject)
    call.end()
  })
}
