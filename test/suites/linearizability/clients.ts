/** Clients of the API that write and read ConfigMaps at random, and record each operation with its answer for the checker, main.go. */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from '../../robustness/fuzz/chance.ts'

export interface Operation {
  readonly client: number
  readonly key: string
  readonly op: 'read' | 'create' | 'put' | 'cas' | 'delete'
  readonly from?: string
  readonly value?: string
  /** Microseconds. */
  readonly start: number
  readonly end: number
  readonly answer: 'ok' | 'missing' | 'exists' | 'conflict' | 'unknown'
  readonly found?: string
  /** The resourceVersion that a write answered. */
  readonly revision?: number
}

export interface Server {
  readonly port: number
  readonly ca: string
  readonly cert: string
  readonly key: string
}

interface Answer {
  /** 0: the server was not reached, so that nothing happened. */
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: objects of the API
  readonly json: any
}

/** Each request has an answer or fails by then, whatever happens to the servers and members: a write may read the store before, and each takes ten seconds at most. */
export const mostMs = 30_000
const collection = '/api/v1/namespaces/default/configmaps'
const microseconds = () => Math.round(performance.now() * 1000)

interface Plan {
  /** Number of the client; unique values begin with it. */
  readonly id: number
  readonly server: Server
  readonly keys: readonly string[]
  readonly chance: Chance
  readonly history: Operation[]
}

/** One operation after the other until the signal aborts. */
export async function runClient({ id, server, keys, chance, history }: Plan, signal: AbortSignal): Promise<void> {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: server.ca, cert: server.cert, key: server.key })
  const seen = new Map<string, { readonly value: string; readonly resourceVersion: string }>()
  const call = (method: string, path: string, body?: object) => ask(agent, server.port, method, path, body)
  for (let count = 0; !signal.aborted; count++) {
    const key = chance.pick(keys)
    const value = `${id}-${count}`
    const known = seen.get(key)
    const op = chance.pick(['read', 'read', 'read', 'create', 'put', 'cas', 'cas', 'delete'] as const)
    if (op === 'cas' && !known) continue
    const start = microseconds()
    const record = (answer: Answer | undefined, more: Partial<Operation> = {}) => {
      if (answer?.status === 0) return
      const revision = answer?.json?.metadata?.resourceVersion
      history.push({
        client: id,
        key,
        op,
        start,
        end: microseconds(),
        answer: answerOf(answer, op),
        ...(revision ? { revision: Number(revision) } : {}),
        ...more,
      })
    }
    const object = (resourceVersion?: string) => ({ metadata: { name: key, ...(resourceVersion ? { resourceVersion } : {}) }, data: { value } })
    if (op === 'read') {
      const found = await (chance.once(2) ? call('GET', `${collection}/${key}`) : listOne(call, key))
      // A read of unknown outcome says nothing.
      if (found?.status !== 200 && found?.status !== 404) {
        await sleep(20)
        continue
      }
      const { data, metadata } = found.status === 200 ? found.json : { data: { value: '' }, metadata: undefined }
      if (metadata) seen.set(key, { value: data.value, resourceVersion: metadata.resourceVersion })
      history.push({ client: id, key, op, start, end: microseconds(), answer: 'ok', found: data.value })
    } else if (op === 'create') record(await call('POST', collection, object()), { value })
    else if (op === 'put') record(await call('PUT', `${collection}/${key}`, object()), { value })
    else if (op === 'cas' && known) record(await call('PUT', `${collection}/${key}`, object(known.resourceVersion)), { value, from: known.value })
    else record(await call('DELETE', `${collection}/${key}`))
  }
  agent.destroy()
}

/** A list without a resourceVersion is as new as a GET. */
async function listOne(call: (method: string, path: string) => Promise<Answer | undefined>, key: string): Promise<Answer | undefined> {
  const found = await call('GET', `${collection}?fieldSelector=metadata.name%3D${key}`)
  if (found?.status !== 200) return undefined
  const [item] = found.json.items
  return item ? { status: 200, json: item } : { status: 404, json: undefined }
}

function answerOf(answer: Answer | undefined, op: Operation['op']): Operation['answer'] {
  const { status = 0, json } = answer ?? {}
  if (status === 200 || status === 201) return 'ok'
  if (status === 404) return 'missing'
  if (status === 409 && op === 'create' && json?.reason === 'AlreadyExists') return 'exists'
  if (status === 409 && op === 'cas' && json?.reason === 'Conflict') return 'conflict'
  return 'unknown'
}

/** The longest time of a request so far, in milliseconds. */
export const longest = { ms: 0 }

/** Undefined without an answer. @throws Error when it takes longer than `mostMs` */
export async function ask(agent: https.Agent, port: number, method: string, path: string, body?: object): Promise<Answer | undefined> {
  const startMs = performance.now()
  const answer = await send(agent, port, method, path, body)
  longest.ms = Math.max(longest.ms, performance.now() - startMs)
  if (longest.ms >= mostMs) throw new Error(`${method} ${path} had no answer within ${mostMs} ms`)
  if (answer?.status === 0) await sleep(100)
  return answer
}

function send(agent: https.Agent, port: number, method: string, path: string, body: object | undefined): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const headers = body ? { 'content-type': 'application/json' } : {}
    const sent = https.request({ host: '127.0.0.1', port, agent, method, path, headers, signal: AbortSignal.timeout(mostMs) }, async (response) => {
      try {
        let text = ''
        for await (const piece of response.setEncoding('utf8')) text += piece
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) })
      } catch {
        resolve(undefined)
      }
    })
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? { status: 0, json: undefined } : undefined))
    sent.end(body && JSON.stringify(body))
  })
}
