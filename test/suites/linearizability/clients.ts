/** Clients of the API that write and read ConfigMaps at random, and record each operation with its answer for the checker, main.go. */
import https from 'node:https'
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
}

export interface Server {
  readonly port: number
  readonly ca: string
  readonly cert: string
  readonly key: string
}

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: objects of the API
  readonly json: any
}

/** A request without an answer by then has an unknown outcome. */
const timeoutMs = 4000
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
  const ask = (method: string, path: string, body?: object) => call(agent, server.port, method, path, body)
  for (let count = 0; !signal.aborted; count++) {
    const key = chance.pick(keys)
    const value = `${id}-${count}`
    const known = seen.get(key)
    const op = chance.pick(['read', 'read', 'read', 'create', 'put', 'cas', 'cas', 'delete'] as const)
    if (op === 'cas' && !known) continue
    const start = microseconds()
    const record = (answer: Operation['answer'], more: Partial<Operation> = {}) =>
      history.push({ client: id, key, op, start, end: microseconds(), answer, ...more })
    const object = (resourceVersion?: string) => ({ metadata: { name: key, ...(resourceVersion ? { resourceVersion } : {}) }, data: { value } })
    if (op === 'read') {
      const found = await (chance.once(2) ? ask('GET', `${collection}/${key}`) : listOne(ask, key))
      // A read of unknown outcome says nothing.
      if (found?.status !== 200 && found?.status !== 404) continue
      const { data, metadata } = found.status === 200 ? found.json : { data: { value: '' }, metadata: undefined }
      if (metadata) seen.set(key, { value: data.value, resourceVersion: metadata.resourceVersion })
      record('ok', { found: data.value })
    } else if (op === 'create') record(answerOf(await ask('POST', collection, object()), op), { value })
    else if (op === 'put') record(answerOf(await ask('PUT', `${collection}/${key}`, object()), op), { value })
    else if (op === 'cas' && known) {
      record(answerOf(await ask('PUT', `${collection}/${key}`, object(known.resourceVersion)), op), { value, from: known.value })
    } else record(answerOf(await ask('DELETE', `${collection}/${key}`), op))
  }
  agent.destroy()
}

/** A list without a resourceVersion is as new as a GET. */
async function listOne(ask: (method: string, path: string) => Promise<Answer | undefined>, key: string): Promise<Answer | undefined> {
  const found = await ask('GET', `${collection}?fieldSelector=metadata.name%3D${key}`)
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

/** Undefined without an answer. */
function call(agent: https.Agent, port: number, method: string, path: string, body: object | undefined): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const headers = body ? { 'content-type': 'application/json' } : {}
    const sent = https.request({ host: '127.0.0.1', port, agent, method, path, headers, signal: AbortSignal.timeout(timeoutMs) }, async (response) => {
      try {
        let text = ''
        for await (const piece of response.setEncoding('utf8')) text += piece
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) })
      } catch {
        resolve(undefined)
      }
    })
    sent.on('error', () => resolve(undefined))
    sent.end(body && JSON.stringify(body))
  })
}
