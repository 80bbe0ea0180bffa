/** Asks a local cluster's API as its administrator (L5), without the client library: readiness, nodes, and what "up" promises. */
import https from 'node:https'
import { text } from 'node:stream/consumers'
import type { Clock } from '#base/clock'
import { CommandError } from '#cli/exitCodes'
import type { KeyPair } from '../pki/certificates.ts'

export interface ProbeAnswer {
  readonly status: number
  readonly body: string
}

export interface ApiProbe {
  /** Status and body; undefined when nothing answers. */
  get(path: string): Promise<ProbeAnswer | undefined>
  /** The same for a POST of JSON. */
  post(path: string, body: unknown): Promise<ProbeAnswer | undefined>
  /** Repeats until `done` says so; CommandError 'timeout' naming what was awaited. */
  until<T>(what: string, deadlineMs: number, done: () => Promise<T | undefined>): Promise<T>
  close(): void
}

const pollMs = 20

export function createApiProbe(port: number, ca: string, admin: KeyPair, clock: Clock): ApiProbe {
  const agent = new https.Agent({ keepAlive: true, ca, cert: admin.cert, key: admin.key })
  const send = (method: 'GET' | 'POST', path: string, body?: string): Promise<ProbeAnswer | undefined> =>
    new Promise((resolve) => {
      const headers = body === undefined ? {} : { 'content-type': 'application/json' }
      const request = https.request({ host: '127.0.0.1', port, method, path, agent, headers, timeout: 5000 }, (response) => {
        text(response).then(
          (answer) => resolve({ status: response.statusCode ?? 0, body: answer }),
          () => resolve(undefined),
        )
      })
      request.once('timeout', () => request.destroy())
      request.once('error', () => resolve(undefined))
      request.end(body)
    })
  return {
    get: (path) => send('GET', path),
    post: (path, body) => send('POST', path, JSON.stringify(body)),
    until: async (what, deadlineMs, done) => {
      const deadline = clock.monotonicMs() + deadlineMs
      for (;;) {
        const result = await done()
        if (result !== undefined) return result
        if (clock.monotonicMs() > deadline) throw new CommandError('timeout', `${what} did not happen within ${Math.round(deadlineMs / 1000)} s`)
        await clock.sleep(pollMs)
      }
    },
    close: () => agent.destroy(),
  }
}

interface NodeList {
  items: { metadata: { name: string }; status?: { conditions?: { type: string; status: string }[]; addresses?: { type: string; address: string }[] } }[]
}

/** Nodes by name: ready or not. */
export async function nodeReadiness(probe: ApiProbe): Promise<Map<string, { ready: boolean; address: string }>> {
  const answer = await probe.get('/api/v1/nodes')
  if (answer?.status !== 200) return new Map()
  const { items } = JSON.parse(answer.body) as NodeList
  return new Map(
    items.map(({ metadata, status }) => [
      metadata.name,
      {
        ready: status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false,
        address: status?.addresses?.find((address) => address.type === 'InternalIP')?.address ?? '',
      },
    ]),
  )
}
