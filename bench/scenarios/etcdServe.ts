/**
 * `skiff etcd serve` and single members of etcd, one after the other under the same load over TLS: puts, transactions and reads of one key, with 64 in flight, 1,000
 * watches of one key, and the memory with 1 GB of data. Every write is on the disk before its answer.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { orAborted } from '#base/orAborted'
import { connectGrpc } from '#grpc/grpcConnection'
import { frame } from '#grpc/grpcWire'
import { methodOf } from '#store/drivers/etcd/methods'
import { testCertificates } from '#testing/testCertificates'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import type { LoadAnswer } from '../tools/http2Connection.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { cpuMicrosOf, usageOf } from '../tools/machine.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'
import { etcdPrograms, type ServingFiles, type StoreServer, startEtcdStore, startSkiffStore } from '../tools/storeServers.ts'

const inFlight = 64
const repeats = 3
const span = 1000
const value = Buffer.alloc(1024, 'v')
const watchers = 1000
const watchConnections = 10
const watchedPuts = 50
const largeValue = Buffer.alloc(32 * 1024, 'w')
const largeKeys = 32_000

interface Load {
  readonly what: string
  readonly count: number
  readonly method: Parameters<typeof methodOf>[0]
  request(index: number): object
}

const keyOf = (index: number) => Buffer.from(`/bench/${String(index % span).padStart(6, '0')}`)

const loads: readonly Load[] = [
  { what: 'put', count: 3000, method: 'KV.Put', request: (index) => ({ key: keyOf(index), value }) },
  {
    what: 'transaction of a compare and a put',
    count: 3000,
    method: 'KV.Txn',
    request: (index) => ({
      compare: [{ key: keyOf(index), target: 'VERSION', result: 'GREATER', version: 0 }],
      success: [{ requestPut: { key: keyOf(index), value } }],
      failure: [{ requestRange: { key: keyOf(index) } }],
    }),
  },
  { what: 'range of one key', count: 6000, method: 'KV.Range', request: (index) => ({ key: keyOf(index * 7919) }) },
]

interface Rates {
  readonly perSecond: number
  readonly note: string
}

const skipped = () => (etcdPrograms().length > 0 ? undefined : 'etcd is not installed')

export const etcdServe: Scenario = {
  name: 'etcd-serve',
  about: `skiff etcd serve and single members of etcd, ${inFlight} requests in flight; ${watchers} watches`,
  skipped,
  run: (context) => withServers(context, (servers, ca) => measureAll(servers, ca, context)),
}

export const etcdMemory: Scenario = {
  name: 'etcd-memory',
  about: 'skiff etcd serve and single members of etcd with 1 GB of data',
  skipped,
  run: (context) =>
    withServers(context, async (servers, ca) => {
      const measured: Measurement[] = []
      for (const server of servers) {
        context.progress(server.name)
        measured.push(await memoryWith(server, ca))
      }
      return measured
    }),
}

async function withServers<T>({ dir }: ScenarioContext, use: (servers: readonly StoreServer[], ca: string) => Promise<T>): Promise<T> {
  const files = await servingFiles(dir)
  const servers: StoreServer[] = []
  try {
    servers.push(await startSkiffStore(path.join(dir, 'store-skiff'), files))
    for (const [at, program] of etcdPrograms().entries()) servers.push(await startEtcdStore(program, path.join(dir, `store-etcd-${at}`), files))
    return await use(servers, readFileSync(files.cert, 'utf8'))
  } finally {
    await Promise.all(servers.map((server) => server.end()))
    for (const name of ['store-skiff', ...etcdPrograms().map((_, at) => `store-etcd-${at}`)]) rmSync(path.join(dir, name), { recursive: true, force: true })
  }
}

async function servingFiles(dir: string): Promise<ServingFiles> {
  const { cert, key } = await testCertificates('CN=store')
  const files = { cert: path.join(dir, 'store.crt'), key: path.join(dir, 'store.key') }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key, { mode: 0o600 })
  return files
}

/** Each repeat goes over all servers, so that a busy machine is busy for all of them. */
async function measureAll(servers: readonly StoreServer[], ca: string, context: ScenarioContext): Promise<Measurement[]> {
  const clients = await Promise.all(servers.map(({ host, port }) => createLoadClient({ host, port, ca })))
  const measured: Measurement[] = []
  try {
    for (const load of loads) {
      const results = servers.map((): Rates[] => [])
      for (let repeat = 0; repeat < repeats; repeat++) {
        for (const [at, server] of servers.entries()) {
          context.progress(`${load.what}, ${server.name}`)
          context.signal.throwIfAborted()
          results[at]?.push(await rateOf(clients[at] as LoadClient, server, load))
        }
      }
      measured.push(...measurementsOf(load.what, '/s', servers, results))
    }
  } finally {
    for (const client of clients) client.close()
  }
  const events = servers.map((): Rates[] => [])
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const [at, server] of servers.entries()) {
      context.progress(`watches, ${server.name}`)
      events[at]?.push(await fanOut(server, ca, context.signal))
    }
  }
  measured.push(...measurementsOf(`events to ${watchers} watches of a key`, '/s', servers, events))
  return measured
}

function measurementsOf(what: string, unit: string, servers: readonly StoreServer[], results: readonly (readonly Rates[])[]): Measurement[] {
  const own = (results[0] ?? []).map(({ perSecond }) => perSecond)
  return servers.flatMap(({ name }, at) => {
    const rates = results[at] ?? []
    const values = rates.map(({ perSecond }) => perSecond)
    const one: Measurement = { what: `${what}: ${name}`, unit, values, note: rates.at(-1)?.note }
    if (at === 0) return [one]
    return [one, { what: `${what}: skiff to ${name}`, unit: 'x', values: own.map((each, i) => each / (values[i] ?? Number.NaN)), target: { atLeast: 1 } }]
  })
}

async function rateOf(client: LoadClient, { pid }: StoreServer, { count, method: name, request }: Load): Promise<Rates> {
  const method = methodOf(name)
  const before = cpuMicrosOf(pid)
  const make = (index: number) => ({
    ...{ method: 'POST', path: method.path, contentType: 'application/grpc', headers: { te: 'trailers' } },
    body: frame(method.request.encode(request(index))),
  })
  const { perSecond, latencies } = await client.loop(count, inFlight, make, needMessage)
  const cpu = (cpuMicrosOf(pid) - before) / count
  return { perSecond, note: `p50 ${rounded(median(latencies))} ms, p99 ${rounded(percentile(latencies, 0.99))} ms, server CPU ${rounded(cpu)} µs each` }
}

/** A refusal is an answer without a message. */
function needMessage({ bytes }: LoadAnswer): void {
  if (bytes === 0) throw new Error('the server has refused a request')
}

/** Events that all watches together get in a second, while one key is put again and again. */
async function fanOut({ host, port, pid }: StoreServer, ca: string, signal: AbortSignal): Promise<Rates> {
  const [watch, put] = [methodOf('Watch.Watch'), methodOf('KV.Put')]
  const key = Buffer.from('/watched')
  const stop = new AbortController()
  const connections = Array.from({ length: watchConnections }, () => connectGrpc(`${host}:${port}`, { tls: { ca } }))
  const perConnection = watchers / watchConnections
  let created = 0
  let events = 0
  let changed = () => {}
  const reached = (count: () => boolean) => {
    const counted = new Promise<void>((resolve) => {
      changed = () => {
        if (count()) resolve()
      }
      changed()
    })
    return orAborted(counted, signal)
  }
  const follow = async (connection: (typeof connections)[number]) => {
    const call = connection.duplex(watch.path, { signal: stop.signal })
    await call.opened
    for (let at = 0; at < perConnection; at++) call.send(watch.request.encode({ createRequest: { key } }))
    for await (const message of call.messages) {
      // A server that is behind puts several events of a watch into one answer.
      const response = watch.response.decode(message) as { readonly created: boolean; readonly events: readonly object[] }
      if (response.created) created++
      events += response.events.length
      changed()
    }
  }
  const following = connections.map(follow)
  await reached(() => created === watchers)
  const [startedMs, before] = [performance.now(), cpuMicrosOf(pid)]
  const writer = connections[0] as (typeof connections)[number]
  for (let at = 0; at < watchedPuts; at++) await writer.unary(put.path, put.request.encode({ key, value }), { timeoutMs: 30_000 })
  await reached(() => events === watchers * watchedPuts)
  const seconds = (performance.now() - startedMs) / 1000
  const cpu = (cpuMicrosOf(pid) - before) / events
  stop.abort()
  await Promise.all(following)
  for (const connection of connections) connection.close()
  return { perSecond: events / seconds, note: `server CPU ${rounded(cpu)} µs each` }
}

async function memoryWith({ name, host, port, pid }: StoreServer, ca: string): Promise<Measurement> {
  const client = await createLoadClient({ host, port, ca })
  const put = methodOf('KV.Put')
  const make = (index: number) => ({
    ...{ method: 'POST', path: put.path, contentType: 'application/grpc', headers: { te: 'trailers' } },
    body: frame(put.request.encode({ key: Buffer.from(`/large/${index}`), value: largeValue })),
  })
  try {
    await client.loop(largeKeys, inFlight, make, needMessage)
  } finally {
    client.close()
  }
  return { what: `resident memory with 1 GB of data: ${name}`, unit: 'MB', values: [usageOf(pid).rssMB] }
}
