/** Latency of one tenant while another floods the server at full speed and gets 429: priority and fairness at its defaults. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import type { FloodTarget } from '../tools/flood.ts'
import type { ServerAddress } from '../tools/http2Connection.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { configMap } from '../tools/objects.ts'
import { median, percentile } from '../tools/statistics.ts'

const namespace = 'bench'
const maps = `/api/v1/namespaces/${namespace}/configmaps`
const repeats = 5
const reads = 500
const mostTimes = 3

export const fairness: Scenario = {
  name: 'fairness',
  about: `${reads} reads of one tenant, one after the other, alone and beside another's flood`,
  async run(context) {
    const tokens = path.join(context.dir, 'tenants.csv')
    writeFileSync(tokens, 'alice,alice,uid-a,"system:authenticated"\nbob,bob,uid-b,"system:authenticated"\n', { mode: 0o600 })
    const flags = ['--runtime', 'simulated', '--nodes', '1', '--kube-apiserver-arg', `token-auth-file=${tokens}`]
    return withCluster(context.dir, 'fairness', flags, async ({ address }) => {
      await prepare(address)
      const plain = { host: address.host, port: address.port, ca: address.ca }
      const alice = await createLoadClient(plain)
      const bob = await startFlood({ address: plain, path: `${maps}/shared`, headers: { authorization: 'Bearer bob' } })
      const alone: number[] = []
      const beside: number[] = []
      let told = ''
      for (let repeat = 0; repeat <= repeats; repeat++) {
        context.signal.throwIfAborted()
        context.progress(`fairness, ${repeat} of ${repeats}`)
        const before = await p99(alice)
        bob.toggle()
        const during = await p99(alice)
        bob.toggle()
        told = await bob.counts()
        // The first one warms up.
        if (repeat === 0) continue
        alone.push(before)
        beside.push(during)
      }
      alice.close()
      await bob.stop()
      return [
        { what: 'p99 alone', unit: 'ms', values: alone },
        { what: 'p99 beside the flood', unit: 'ms', values: beside, note: `the flood's answers ${told}` },
        { what: 'p99, ratio', unit: '', values: [median(beside) / median(alone)], target: { atMost: mostTimes } },
      ] satisfies Measurement[]
    })
  },
}

async function p99(client: LoadClient): Promise<number> {
  const { latencies } = await client.loop(reads, 1, () => ({ method: 'GET', path: `${maps}/shared`, headers: { authorization: 'Bearer alice' } }))
  return percentile(latencies, 0.99)
}

/** What both may read. */
async function prepare(address: ServerAddress): Promise<void> {
  const administrator = await createLoadClient(address)
  try {
    await prepareNamespace(administrator, namespace)
    const apiGroup = 'rbac.authorization.k8s.io'
    const rbac = `/apis/${apiGroup}/v1/namespaces/${namespace}`
    const metadata = { name: 'readers' }
    await administrator.ask('POST', maps, JSON.parse(configMap(namespace, 'shared').toString()))
    await administrator.ask('POST', `${rbac}/roles`, { metadata, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['configmaps'] }] })
    const subjects = ['alice', 'bob'].map((name) => ({ apiGroup, kind: 'User', name }))
    await administrator.ask('POST', `${rbac}/rolebindings`, { metadata, roleRef: { apiGroup, kind: 'Role', name: 'readers' }, subjects })
  } finally {
    administrator.close()
  }
}

/** In a process of its own: who waits must wait for the server alone. */
async function startFlood(target: FloodTarget) {
  const file = path.resolve(import.meta.dirname, '../tools/flood.ts')
  const child = spawn(process.execPath, ['--import', 'tsx', file, JSON.stringify(target)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next()
  return {
    toggle: () => void child.stdin.write('\n'),
    counts: async () => String((await lines.next()).value),
    async stop() {
      child.stdin.end()
      await exited
    },
  }
}
