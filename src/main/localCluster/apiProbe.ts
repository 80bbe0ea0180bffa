/** Asks a local cluster's API as its administrator (L5), without the client library: readiness, nodes, and what "up" promises. */
import https from 'node:https'
import { text } from 'node:stream/consumers'
import type { Clock } from '#base/clock'
import { parseTime } from '#base/time'
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
  delete(path: string): Promise<ProbeAnswer | undefined>
  /**
   * Repeats until `done` says so; CommandError 'timeout' naming what was awaited, and `missing` at the end.
   * @param pausesPerLook the pause after a look, in units of the time that the look took; default: 20 ms
   */
  until<T>(what: string, deadlineMs: number, done: () => Promise<T | undefined>, missing?: () => Promise<string>, pausesPerLook?: number): Promise<T>
  close(): void
}

const pollMs = 20
const nodesPerPage = 500

export function createApiProbe(port: number, ca: string, admin: KeyPair, clock: Clock): ApiProbe {
  const agent = new https.Agent({ keepAlive: true, ca, cert: admin.cert, key: admin.key })
  const send = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<ProbeAnswer | undefined> =>
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
    delete: (path) => send('DELETE', path),
    until: async (what, deadlineMs, done, missing = async () => '', pausesPerLook = 0) => {
      const deadline = clock.monotonicMs() + deadlineMs
      for (;;) {
        const lookedMs = clock.monotonicMs()
        const result = await done()
        if (result !== undefined) return result
        if (clock.monotonicMs() > deadline) {
          throw new CommandError('timeout', `${what} did not happen within ${Math.round(deadlineMs / 1000)} s${await missing()}`)
        }
        await clock.sleep(Math.max(pollMs, pausesPerLook * (clock.monotonicMs() - lookedMs)))
      }
    },
    close: () => agent.destroy(),
  }
}

interface NodeCondition {
  readonly type: string
  readonly status: string
  readonly message?: string
  readonly lastHeartbeatTime?: string
}

interface NodeList {
  readonly metadata: { readonly continue?: string }
  readonly items: readonly {
    readonly metadata: { readonly name: string }
    readonly status?: { readonly conditions?: readonly NodeCondition[]; readonly addresses?: readonly { readonly type: string; readonly address: string }[] }
  }[]
}

export interface NodeReadiness {
  readonly ready: boolean
  /** When the kubelet last wrote its condition, in milliseconds since the epoch; 0: never. */
  readonly heartbeatMs: number
  /** What the condition says. */
  readonly message: string
  readonly address: string
}

/** Nodes by name: ready or not, and since when that is known. */
export async function nodeReadiness(probe: ApiProbe): Promise<Map<string, NodeReadiness> | undefined> {
  const found = new Map<string, NodeReadiness>()
  let from = ''
  do {
    const answer = await probe.get(`/api/v1/nodes?limit=${nodesPerPage}${from}`)
    if (answer?.status !== 200) return undefined
    const { items, metadata } = JSON.parse(answer.body) as NodeList
    for (const node of items) found.set(node.metadata.name, readinessOf(node))
    from = metadata.continue ? `&continue=${encodeURIComponent(metadata.continue)}` : ''
  } while (from !== '')
  return found
}

function readinessOf({ status }: NodeList['items'][number]): NodeReadiness {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready')
  return {
    ready: condition?.status === 'True',
    heartbeatMs: parseTime(condition?.lastHeartbeatTime ?? '') ?? 0,
    message: condition?.message ?? '',
    address: status?.addresses?.find((address) => address.type === 'InternalIP')?.address ?? '',
  }
}
