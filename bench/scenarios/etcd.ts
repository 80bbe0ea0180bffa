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
const writers = 8
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

/** Reads come from the cache, whatever is behind it. */
const wanted: readonly { readonly load: Load; readonly isRead: boolean }[] = [
  ...['create', 'update', 'merge patch', 'get', 'delete'].map((what) => ({ load: loads.find((one) => one.what === what) as Load, isRead: what === 'get' })),
  { load: list, isRead: true },
]

export const etcd: Scenario = {
  name: 'etcd',
  about: 'the API over three members of etcd: CPU, two servers, fail-over',
  skipped: () => (etcdPrograms().length > 0 ? undefined : 'etcd is not installed'),
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
        measured.push(await failOver(first, cluster, context))
        return measured
      })
    }),
}

async function compare(own: ApiBench, over: ApiBench, context: ScenarioContext): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const { load, isRead } of wanted) {
    context.progress(load.what)
    const file = await measureLoad(own, load, repeats)
    const etcds = await measureLoad(over, load, repeats)
    const ratio = etcds.cpuMicros / file.cpuMicros
    measured.push(
      { what: `${load.what}, own file`, unit: '/s', values: file.values, note: file.note },
      { what: `${load.what}, etcd`, unit: '/s', values: etcds.values, note: etcds.note },
      { what: `${load.what}: CPU of the server, etcd to own file`, unit: 'x', values: [ratio], ...(isRead ? { target: { atMost: 1.1 } } : {}) },
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

/** The longest time between two acknowledged writes of all writers, from the end of the leader on. */
async function failOver({ client }: ApiBench, cluster: EtcdMembers, { progress, signal }: ScenarioContext): Promise<Measurement> {
  const gaps: number[] = []
  let failed = 0
  for (let repeat = 0; repeat < failOvers; repeat++) {
    progress(`fail-over ${repeat + 1}`)
    signal.throwIfAborted()
    let [isWriting, lastMs, longestMs] = [true, performance.now(), 0]
    const write = async (writer: number) => {
      for (let count = 0; isWriting; count++) {
        const body = { metadata: { name: `fail-over-${repeat}-${writer}-${count}` } }
        const isDone = await client.ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, body).then(
          () => true,
          () => false,
        )
        if (!isDone) {
          failed++
          await new Promise((resolve) => setTimeout(resolve, 20))
          continue
        }
        longestMs = Math.max(longestMs, performance.now() - lastMs)
        lastMs = performance.now()
      }
    }
    const writing = Array.from({ length: writers }, (_, writer) => write(writer))
    await new Promise((resolve) => setTimeout(resolve, 2000))
    longestMs = 0
    const restart = await cluster.killLeader()
    await new Promise((resolve) => setTimeout(resolve, 8000))
    isWriting = false
    await Promise.all(writing)
    gaps.push(longestMs)
    await restart()
  }
  const note = `${rounded(failed)} writes of unknown outcome in all`
  return { what: 'the leader is killed: until writes resume', unit: 'ms', values: gaps, target: { atMost: longestFailOverMs }, note }
}
