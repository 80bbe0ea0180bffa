import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { StreamCall } from '#grpc/grpcService'
import { createMemoryStore } from '../drivers/memory.ts'
import { createAlarms } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import { createServeMetrics } from './serveMetrics.ts'
import { type WatchRequest, watchService } from './watchService.ts'

interface Sent {
  readonly watchId: number
  readonly canceled?: boolean
  readonly cancelReason?: string
  readonly events?: readonly { readonly kv: { readonly key: Buffer } }[]
}

/** A client that reads nothing until `read` is called; each message takes a megabyte. */
function slowClient(requests: AsyncIterable<WatchRequest>) {
  const left = new AbortController()
  const sent: Sent[] = []
  let unread = 0
  const waiting: (() => void)[] = []
  const drain = () => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  const call: StreamCall<WatchRequest> = {
    client: { metadata: () => undefined, commonName: () => undefined },
    requests,
    signal: left.signal,
    send: (message) => {
      sent.push(message as Sent)
      unread += 1024 * 1024
    },
    get queuedBytes() {
      return unread
    },
    // As a stream that is closed: nothing is waited for.
    drained: async () => {
      if (unread > 0 && !left.signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
  const read = () => {
    unread = 0
    drain()
  }
  const leave = () => {
    left.abort()
    drain()
  }
  return { call, sent, read, leave }
}

function world() {
  const clock = new VirtualClock()
  const store = createMemoryStore({ clock })
  const header = (revision = store.latestRevision()) => ({ clusterId: 1, memberId: 1, revision, raftTerm: 1 })
  const metrics = createServeMetrics(noMetrics)
  const api = { store, clock, alarms: createAlarms(), header, metrics, maxRequestBytes: 1024, progressNotifyMs: 600_000 } as unknown as EtcdApi
  const watch = watchService(api).streams?.Watch as unknown as (call: StreamCall<WatchRequest>, permit: () => void) => Promise<void>
  const put = (key: string) => store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.of(1) }] })
  return { store, watch, put }
}

const none = { createRequest: null, cancelRequest: null, progressRequest: null }
const createRequest = (key: string) => ({
  key: Buffer.from(key),
  rangeEnd: Buffer.from(`${key}\uffff`, 'latin1'),
  startRevision: 0,
  progressNotify: false,
  filters: [],
  prevKv: false,
  watchId: 0,
  fragment: false,
})
const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('ETC-06 a client that reads no answers gets to send no more requests', async () => {
  const { watch } = world()
  let taken = 0
  async function* requests() {
    for (; taken < 100; taken++) yield { ...none, createRequest: createRequest('a') }
  }
  const client = slowClient(requests())
  const running = watch(client.call, () => {})
  await turns()
  assert.ok(taken < 10, `${taken} requests`)
  client.leave()
  await running
})

test('ETC-06 a watch whose client reads slowly stops, and loses and repeats nothing when the client has caught up', async () => {
  const { watch, put } = world()
  async function* requests() {
    yield { ...none, createRequest: createRequest('k') }
    await new Promise((resolve) => client.call.signal.addEventListener('abort', resolve))
  }
  const client = slowClient(requests())
  const running = watch(client.call, () => {})
  await turns()
  const keys = Array.from({ length: 50 }, (_, i) => `k${String(i).padStart(2, '0')}`)
  for (const key of keys) await put(key)
  await turns()
  const seen = () => client.sent.flatMap(({ events = [] }) => events.map(({ kv }) => kv.key.toString()))
  assert.ok(seen().length < 10, `${seen().length} events`)
  for (let i = 0; i < 100 && seen().length < keys.length; i++) {
    client.read()
    await turns()
  }
  assert.deepEqual(seen(), keys)
  client.leave()
  await running
})

test('ETC-06 many watches of one change send no more than a client reads, and each of them gets it', async () => {
  const { watch, put } = world()
  async function* requests() {
    for (let i = 0; i < 200; i++) yield { ...none, createRequest: createRequest('k') }
    await new Promise((resolve) => client.call.signal.addEventListener('abort', resolve))
  }
  const client = slowClient(requests())
  const running = watch(client.call, () => {})
  const readOn = async (isDone: () => boolean) => {
    for (let i = 0; i < 1000 && !isDone(); i++) {
      client.read()
      await turns()
    }
  }
  await readOn(() => client.sent.length === 200)
  client.read()
  await put('k')
  await turns()
  const events = () => client.sent.filter((one) => one.events)
  assert.ok(events().length < 10, `${events().length} events`)
  await readOn(() => events().length === 200)
  assert.equal(new Set(events().map(({ watchId }) => watchId)).size, 200)
  client.leave()
  await running
})

test('ETC-06 a watch that stopped is canceled as compacted when its history was compacted meanwhile', async () => {
  const { store, watch, put } = world()
  async function* requests() {
    yield { ...none, createRequest: createRequest('k') }
    await new Promise((resolve) => client.call.signal.addEventListener('abort', resolve))
  }
  const client = slowClient(requests())
  const running = watch(client.call, () => {})
  await turns()
  for (let i = 0; i < 50; i++) await put('k')
  await store.compact(store.latestRevision())
  client.read()
  await turns()
  assert.match(client.sent.at(-1)?.cancelReason ?? '', /required revision has been compacted/)
  client.leave()
  await running
})
