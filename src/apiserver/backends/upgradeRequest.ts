/**
 * Asks a backend to switch protocols and reads its answer, with node's own parser (L3). Only a 101 that names a protocol of the request is
 * agreement; everything else is an answer like any other.
 */
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { StatusError } from '#api/machinery/status'
import type { Backend, ForwardedRequest } from './backend.ts'
import { upgradeHeaders } from './forwardedHeaders.ts'

const maxHeadBytes = 64 * 1024

export type UpgradeAnswer =
  /** `head` goes to the client as it is, then `rest`, what came behind it. */
  | { readonly type: 'switched'; readonly head: Buffer; readonly headers: IncomingHttpHeaders; readonly rest: Buffer }
  | { readonly type: 'refused'; readonly response: IncomingMessage }

/** @param upstream a fresh connection to the backend; destroyed when this fails. @throws StatusError 500 with upstream's texts */
export function requestUpgrade(request: ForwardedRequest, backend: Backend, upstream: Duplex): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      upstream.destroy()
      reject(error instanceof StatusError ? error : new StatusError('', `error reading the upgrade response: ${error.message}`, { cause: error }))
    }
    const outgoing = httpRequest({
      method: request.method,
      path: backend.path,
      headers: upgradeHeaders(request, backend),
      maxHeaderSize: maxHeadBytes,
      createConnection: () => upstream,
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => fail(error.code === 'ECONNRESET' ? new Error('unexpected EOF', { cause: error }) : error))
    outgoing.once('response', (response) => {
      response.on('error', () => {})
      resolve({ type: 'refused', response })
    })
    // Interim answers, and a 101 that names no protocol.
    outgoing.on('information', ({ statusCode }) => fail(new StatusError('', `invalid upgrade response: status code ${statusCode}`)))
    outgoing.once('upgrade', (response, _socket, rest) => {
      upstream.on('error', () => {})
      const asked = String(request.headers.upgrade)
      const switched = response.headers.upgrade ?? ''
      if (response.statusCode !== 101) fail(new StatusError('', `invalid upgrade response: status code ${response.statusCode}`))
      else if (!protocolsOf(asked).includes(switched.trim().toLowerCase())) {
        fail(new StatusError('', `backend tried to switch protocol ${JSON.stringify(switched)} when ${JSON.stringify(asked)} was requested`))
      } else resolve({ type: 'switched', head: headOf(response), headers: response.headers, rest })
    })
    outgoing.end()
  })
}

function protocolsOf(header: string): readonly string[] {
  return header.split(',').map((name) => name.trim().toLowerCase())
}

function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`]
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}
