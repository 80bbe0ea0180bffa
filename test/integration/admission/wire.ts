/** A POST over TLS, for what only headers tell. */
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'

export function postForHeaders({ url, ca, token }: { url: string; ca: string; token: string }, body: object): Promise<IncomingHttpHeaders> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const outgoing = request(url, { method: 'POST', ca, headers, agent: false }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.headers))
    })
    outgoing.on('error', reject)
    outgoing.end(JSON.stringify(body))
  })
}
