/** The examples of docs/examples/client, run as they stand; those of docs/examples/operator have their own tests. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { configMaps, leases, pods } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { startCluster, type TestCluster } from '#testing/cluster'
import { countAsLeader } from '../../../docs/examples/client/leaderElection.ts'
import { printPods } from '../../../docs/examples/client/workQueue.ts'
import '../../../docs/examples/operator/backupOperator.test.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const cluster: TestCluster = await startCluster()
after(() => cluster.close())
const connection = { client: cluster.client, clock: cluster.clock, random: seededRandom(1), log: noLog }
const pod = { namespace: 'default', name: 'web' }
const spec = { containers: [{ name: 'main', image: 'example.com/app:1' }] }

test('user need 50: the example of a work queue prints pods as they change, and tries again what fails', async () => {
  const lines: string[] = []
  let failures = 2
  const print = (line: string) => {
    if (line.endsWith('Running') && failures-- > 0) throw new Error('the printer is out of paper')
    lines.push(line)
  }
  const stop = new AbortController()
  const running = printPods(connection, { print }, stop.signal)
  await cluster.client.of(pods).create({ metadata: pod, spec })
  await cluster.clock.advance(10_000)
  await cluster.client.of(pods).delete(pod, { gracePeriodSeconds: 0 })
  await cluster.clock.advance(10_000)
  stop.abort(new Error('the test is over'))
  await running
  assert.ok(failures < 0, 'what failed was not tried again')
  assert.deepEqual([...new Set(lines)], ['default/web is Pending', 'default/web is Running', 'default/web is gone'])
})

test('user need 49: the example of leader election hands over at once on a stop, and after the lease when its process dies', async () => {
  const lock = { namespace: 'default', name: 'counter' }
  const leader = async () => (await cluster.client.of(configMaps).get(lock)).data?.leader
  const stops = new Map<string, AbortController>()
  const dead = new Set<string>()
  const compete = (identity: string) => {
    const stop = new AbortController()
    stops.set(identity, stop)
    const { transport } = cluster.client
    const mortal = createClient({
      request: (...args) =>
        dead.has(identity) ? Promise.reject(Object.assign(new Error('connection lost'), { code: 'ECONNRESET' })) : transport.request(...args),
      watch: (...args) => transport.watch(...args),
    })
    return countAsLeader({ ...connection, client: mortal }, identity, lock, stop.signal).catch(() => {})
  }
  const first = compete('one')
  await cluster.until(async () => ((await leader()) === 'one' ? true : undefined))
  const others = [compete('two')]
  await cluster.clock.advance(30_000)
  assert.equal(await leader(), 'one')
  stops.get('one')?.abort(new Error('asked to stop'))
  await first
  await cluster.clock.advance(3_000)
  assert.equal(await leader(), 'two')
  others.push(compete('three'))
  await cluster.clock.advance(5_000)
  dead.add('two')
  await cluster.clock.advance(25_000)
  assert.equal(await leader(), 'three')
  for (const stop of stops.values()) stop.abort(new Error('the test is over'))
  await cluster.idle()
  await Promise.all(others)
  assert.equal((await cluster.client.of(leases).get(lock)).spec?.holderIdentity, '')
})

test('user need 50: the example for pods connects with the kubeconfig, and counts pods', { timeout: 60_000 }, async () => {
  const folder = fs.mkdtempSync('/tmp/skiff-example-')
  const kubeconfig = path.join(folder, 'config')
  fs.writeFileSync(kubeconfig, await cluster.kubeconfig(), { mode: 0o600 })
  try {
    const args = ['--import', 'tsx', 'docs/examples/client/inCluster.ts', 'lost']
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env: { ...process.env, KUBECONFIG: kubeconfig } })
    assert.match(stdout, /^There are 0 pods in the cluster\nNo pod lost in default\n$/)
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
})
