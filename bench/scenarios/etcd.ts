/**
 * The API over three members of etcd, whose data is on the disk, next to the API over its own file: the server's CPU time for each request; what a second server over
 * the same members costs; and how long writes wait when the leader is killed.
 */
import path from 'node:path'
import { type ApiBench, namespace, withApiBench } from '../api/apiBench.ts'
import { type Load, loads } from '../api/loads.ts'
import { measureLoad } from '../api/measureLoad.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { cpuMicrosOf } from '../tools/machine.ts'
import { configMap } from '../tools/objects.ts'
import { rounded } from '../tools/statistics.ts'
import { type EtcdMembers, etcdPrograms, withEtcdMembers } from '../tools/storeServers.ts'

const members = 3
const repeats = 2
const hundred = '/api/v1/namespaces/hundred/configmaps'
const creates = 4000
const failOvers = 3
const betweenWritesMs = 50
const longestWaitMs = 20_000
/** Members elect a leader within two of their election timeouts, of a second each. */
const longestFailOverMs = 2000

const list: Load = {
  what: 'list of 100 from the cache',
  count: 3000,
  prepare: async ({ client }) => {
    await client.ask('POST', '/api/v1/namespaces', { metadata: { name: 'hundred' } })
    for (let index = 0; index < 100; index++) await client.ask('POST', hundred, JSON.parse(configMap('hundred', `cm-${index}`).toString()))
  },
  request: () => ({ method: 'GET', path: `${hundred}?resourceVersion=0` }),
}

const loadOf = (what: string) => loads.find((one) => one.what === what) as Load

const getFromCache: Load = {
  what: 'get from the cache',
  count: 10_000,
  request: (bench, index, worker) => {
    const request = loadOf('get').request(bench, index, worker)
    return { ...request, path: `${request.path}?resourceVersion=0` }
  },
}

/** A get without a resourceVersion asks the store for its newest revision; a read from the cache does not. */
const wanted: readonly { readonly load: Load; readonly isCached: boolean }[] = [
  ...['create', 'update', 'merge patch', 'get'].map((what) => ({ load: loadOf(what), isCached: false })),
  { load: getFromCache, isCached: true },
  { load: list, isCached: true },
  { load: loadOf('delete'), isCached: false },
]

const skipped = () => (etcdPrograms().length > 0 ? undefined : 'etcd is not installed')

export const etcd: Scenario = {
  name: 'etcd',
  about: 'the API over three members of etcd: CPU, and two servers',
  skipped,
  run: (context) =>
    withEtcdMembers(path.join(context.dir, 'members'), members, (cluster) => {
      const over = { dir: context.dir, signal: context.signal, flags: [`--etcd-servers=${cluster.urls.join(',')}`] }
      const measured: Measurement[] = []
      return withApiBench({ ...over, name: 'api-a' }, async (first) => {
        await withApiBench({ ...over, name: 'api-file', flags: [] }, async (own) => measured.push(...(await compare(own, first, context))))
        const alone = await createsPerCpu([first], 'alone')
        context.progress('two servers')
        // The namespace is there already.
        await withApiBench({ ...over, name: 'api-b', isNew: false }, async (second) => {
          const both = await createsPerCpu([first, second], 'both')
          measured.push(
            { what: 'CPU of one server over the members for a create', unit: 'µs', values: [alone] },
            { what: 'CPU of two servers together for a create', unit: 'µs', values: [both] },
            { what: 'two servers to one', unit: 'x', values: [both / alone], target: { atMost: 1.15 } },
          )
        })
        return measured
      })
    }),
}

export const etcdFailOver: Scenario = {
  name: 'etcd-fail-over',
  about: 'the leader of three members of etcd is killed under writes to the API',
  skipped,
  run: (context) =>
    withEtcdMembers(path.join(context.dir, 'members-fail-over'), members, (cluster) =>
      withApiBench({ dir: context.dir, signal: context.signal, name: 'api', flags: [`--etcd-servers=${cluster.urls.join(',')}`] }, async (bench) => [
        await failOver(bench, cluster, context),
      ]),
    ),
}

async function compare(own: ApiBench, over: ApiBench, context: ScenarioContext): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const { load, isCached } of wanted) {
    context.progress(load.what)
    const file = await measureLoad(own, load, repeats)
    const etcds = await measureLoad(over, load, repeats)
    const ratio = etcds.cpuMicros / file.cpuMicros
    measured.push(
      { what: `${load.what}, own file`, unit: '/s', values: file.values, note: file.note },
      { what: `${load.what}, etcd`, unit: '/s', values: etcds.values, note: etcds.note },
      { what: `${load.what}: CPU of the server, etcd to own file`, unit: 'x', values: [ratio], ...(isCached ? { target: { atMost: 1.1 } } : {}) },
    )
  }
  return measured
}

/** CPU time of all servers for one create, which they get in turn. In microseconds. */
async function createsPerCpu(servers: readonly ApiBench[], prefix: string): Promise<number> {
  const cpu = () => servers.reduce((sum, { serverPid }) => sum + cpuMicrosOf(serverPid), 0)
  const before = cpu()
  const share = creates / servers.length
  await Promise.all(
    servers.map(({ client, inFlight }, at) =>
      client.loop(share, inFlight / servers.length, (index) => ({
        method: 'POST',
        path: `/api/v1/namespaces/${namespace}/configmaps`,
        body: configMap(namespace, `${prefix}-${at}-${index}`),
        contentType: 'application/json',
      })),
    ),
  )
  return (cpu() - before) / creates
}

/** From the end of the leader until a write is acknowledged that was sent after it. Those under way at that time may wait for etcd's own limit, of seven seconds. */
async function failOver({ client }: ApiBench, cluster: EtcdMembers, { progress, signal }: ScenarioContext): Promise<Measurement> {
  const took: number[] = []
  let failed = 0
  for (let repeat = 0; repeat < failOvers; repeat++) {
    progress(`fail-over ${repeat + 1}`)
    signal.throwIfAborted()
    const restart = await cluster.killLeader()
    const killedMs = performance.now()
    let resumedMs: number | undefined
    const writes: Promise<void>[] = []
    for (let count = 0; resumedMs === undefined && performance.now() - killedMs < longestWaitMs; count++) {
      const body = { metadata: { name: `fail-over-${repeat}-${count}` } }
      const write = client.ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, body)
      const done = () => {
        resumedMs ??= performance.now()
      }
      writes.push(write.then(done, () => void failed++))
      await new Promise((resolve) => setTimeout(resolve, betweenWritesMs))
    }
    took.push((resumedMs ?? Number.POSITIVE_INFINITY) - killedMs)
    await Promise.all(writes)
    await restart()
  }
  const note = `${rounded(failed)} writes of unknown outcome in all`
  return { what: 'the leader is killed: until a new write succeeds', unit: 'ms', values: took, target: { atMost: longestFailOverMs }, note }
}
