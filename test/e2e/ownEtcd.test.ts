/** ETC-07, ETC-08, ETC-18: `skiff up --etcd 3`, with a simulated node: writes are accepted without one member, it comes back, and nothing stays after delete. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToEtcd() || obstacleToCluster(false)
const options = { skip, timeout: 120_000 }
let cluster: LocalCluster
let dir = ''

interface Status {
  readonly ready: boolean
  readonly etcd: readonly { readonly name: string; readonly healthy: boolean; readonly url: string }[]
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
  readonly restarts: readonly { readonly what: string; readonly ending: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', cluster.name, '-o', 'json'])).stdout) as Status
const pidOf = (found: Status, member: string) => found.pids.find(({ role, node }) => role === 'etcd' && node === member)?.pid as number
const members = async () =>
  JSON.parse((await cluster.skiff(['etcd', 'member', 'ls', '-o', 'json'])).stdout) as { readonly name: string; readonly role: string }[]

/** A process that nothing has waited for yet has no command line any more. */
function hasEnded(pid: number): boolean {
  const file = `/proc/${pid}/cmdline`
  return !fs.existsSync(file) || fs.readFileSync(file, 'utf8') === ''
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start('e2e-etcd', ['--etcd', '3', '--runtime', 'simulated', '--simulated-nodes', '1'])
  dir = path.join(cluster.dir, 'home/clusters/e2e-etcd')
})
after(async () => {
  if (skip) return
  // The cluster is pruned by a test, without the directory around it.
  if (fs.existsSync(dir)) await cluster.delete()
  else fs.rmSync(cluster.dir, { recursive: true })
})

function etcdctl(url: string, ...args: string[]): Buffer {
  const pki = path.join(dir, 'pki/etcd')
  const flags = [`--endpoints=${url}`, `--cacert=${pki}/ca.crt`, `--cert=${pki}/apiserver-etcd-client.crt`, `--key=${pki}/apiserver-etcd-client.key`]
  return execFileSync('etcdctl', [...flags, ...args], { env: { ...process.env, ETCDCTL_API: '3' }, stdio: ['ignore', 'pipe', 'pipe'] })
}

test('ETC-18 three members are healthy, with keys that only their owner reads', options, async () => {
  const found = await status()
  assert.deepEqual([found.ready, found.etcd.map(({ name, healthy }) => [name, healthy])], [true, ['etcd-1', 'etcd-2', 'etcd-3'].map((name) => [name, true])])
  assert.deepEqual((await members()).map(({ role }) => role).sort(), ['follower', 'follower', 'leader'])
  const keys = fs.readdirSync(path.join(dir, 'pki/etcd')).filter((file) => file.endsWith('.key'))
  assert.deepEqual(
    keys.map((file) => fs.statSync(path.join(dir, 'pki/etcd', file)).mode & 0o777),
    keys.map(() => 0o600),
  )
})

test('ETC-02 objects are upstream’s protobuf under upstream’s keys', options, async () => {
  await cluster.must(['create', 'configmap', 'first', '--from-literal=k=v'])
  const [member] = (await status()).etcd
  const value = etcdctl(member?.url ?? '', 'get', '/registry/configmaps/default/first', '--print-value-only')
  assert.equal(value.toString('latin1', 0, 4), 'k8s\0')
})

test('ETC-19 a member refuses a client of the cluster’s own authority', options, async () => {
  const [member] = (await status()).etcd
  const pki = path.join(dir, 'pki')
  const flags = [`--endpoints=${member?.url}`, `--cacert=${pki}/etcd/ca.crt`, `--cert=${pki}/admin.crt`, `--key=${pki}/admin.key`, '--command-timeout=2s']
  assert.throws(() => execFileSync('etcdctl', [...flags, 'get', '/registry/', '--prefix'], { env: { ...process.env, ETCDCTL_API: '3' }, stdio: 'pipe' }))
})

test('ETC-20 a snapshot of the members is the one that etcd sees, and a cluster without etcd takes it', options, async () => {
  const file = path.join(cluster.dir, 'etcd.db')
  assert.equal((await cluster.skiff(['snapshot', 'save', file, '--cluster', cluster.name])).code, 0)
  const { hash, revision } = JSON.parse((await cluster.skiff(['snapshot', 'status', file, '-o', 'json'])).stdout)
  const env = { ...process.env, ETCDCTL_API: '3' }
  const judged = JSON.parse(execFileSync('etcdctl', ['snapshot', 'status', file, '-w', 'json'], { env, encoding: 'utf8' }))
  assert.deepEqual([hash, revision], [judged.hash, judged.revision])
  const restored = await cluster.skiff(['snapshot', 'restore', file, 'taken'])
  assert.match(restored.stderr, new RegExp(`keys of \\S+ at revision ${revision}`))
  fs.rmSync(path.join(cluster.dir, 'home/clusters/taken'), { recursive: true })
})

test('ETC-08 writes are accepted without the leader, which the supervisor starts again', options, async () => {
  const leader = (await members()).find(({ role }) => role === 'leader')?.name as string
  const before = pidOf(await status(), leader)
  process.kill(before, 'SIGKILL')
  // A write that was under way with the leader is answered 504: its outcome is unknown.
  const write = async () => (await cluster.kubectl(['create', 'configmap', 'second'])).stderr
  await eventually('a write', 60_000, write, (stderr) => stderr === '' || /already exists/.test(stderr))
  const back = await eventually('three healthy members', 30_000, status, ({ etcd }) => etcd.every(({ healthy }) => healthy))
  assert.notEqual(pidOf(back, leader), before)
  assert.deepEqual(
    back.restarts.map(({ what, ending }) => [what, ending]),
    [[leader, 'signal SIGKILL']],
  )
})

test('ETC-07 ETC-13 the lead moves to the member that is named, and the members are rewritten one by one, the leader last', options, async () => {
  const roles = await members()
  const [leader = '', other = ''] = ['leader', 'follower'].map((role) => roles.find((one) => one.role === role)?.name)
  const moved = await cluster.skiff(['etcd', 'member', 'move-leader', other])
  assert.equal(moved.code, 0, moved.stderr)
  assert.equal((await members()).find(({ role }) => role === 'leader')?.name, other)
  const again = await cluster.skiff(['etcd', 'member', 'move-leader', other])
  assert.equal(again.code, 0, again.stderr)
  const all = await cluster.skiff(['etcd', 'member', 'defrag'])
  assert.deepEqual([all.code, /Member (\S+) is rewritten[^\n]*\n*$/.exec(all.stderr.trimEnd())?.[1]], [0, other], all.stderr)
  const one = await cluster.skiff(['etcd', 'member', 'defrag', leader])
  assert.deepEqual([one.code, one.stderr.match(/is rewritten/g)?.length], [0, 1], one.stderr)
  const unknown = await cluster.skiff(['etcd', 'member', 'move-leader', 'etcd-9'])
  assert.deepEqual([unknown.code, /etcd has no member "etcd-9"/.test(unknown.stderr)], [3, true], unknown.stderr)
})

test('ARC-03 only the API server and the members hold connections to the members', options, async () => {
  const found = await status()
  const ports = found.etcd.map(({ url }) => new URL(url).port)
  const lines = execFileSync('ss', ['-Htnp', 'state', 'established', `( ${ports.map((port) => `dport = :${port}`).join(' or ')} )`], { encoding: 'utf8' })
  const pids = new Set([...lines.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid)))
  assert.ok(pids.size > 0, lines)
  const allowed = found.pids.filter(({ role }) => role === 'etcd' || role === 'server').map(({ pid }) => pid)
  assert.deepEqual(
    [...pids].filter((pid) => !allowed.includes(pid)),
    [],
  )
})

test(
  'ARC-08 ETC-21 ETC-23 without a quorum a write fails in bounded time and /readyz names etcd, one member still answers serializable reads, and with it writes succeed',
  options,
  async () => {
    const found = await status()
    const suspended = ['etcd-2', 'etcd-3'].map((name) => pidOf(found, name))
    const url = found.etcd[0]?.url ?? ''
    const read = (consistency: string) =>
      etcdctl(url, '--command-timeout=5s', 'get', '/registry/configmaps/default/second', '--keys-only', `--consistency=${consistency}`)
    for (const pid of suspended) process.kill(pid, 'SIGSTOP')
    try {
      const started = performance.now()
      const refused = await cluster.kubectl(['create', 'configmap', 'third'], 90_000)
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /^error: failed to create configmap: (Timeout|etcdserver: |the server|rpc error|.*unavailable)/i)
      assert.ok(performance.now() - started < 75_000)
      assert.throws(() => read('l'))
      assert.match(read('s').toString(), /second/)
      const readyz = await cluster.kubectl(['get', '--raw', '/readyz?verbose'])
      assert.match(readyz.stderr + readyz.stdout, /\[-\]etcd failed/)
    } finally {
      for (const pid of suspended) process.kill(pid, 'SIGCONT')
    }
    const write = async () => (await cluster.kubectl(['create', 'configmap', 'third'])).stderr
    await eventually('a write', 60_000, write, (stderr) => stderr === '' || /already exists/.test(stderr))
  },
)

test('ETC-09 a member is added, another one removed with its data, and the objects are there', options, async () => {
  assert.equal((await cluster.skiff(['etcd', 'member', 'add', '-q'])).stdout, 'etcd-4\n')
  const removed = await cluster.skiff(['etcd', 'member', 'remove', 'etcd-1', '-q'])
  assert.equal(removed.code, 0, removed.stderr)
  assert.deepEqual((await members()).map(({ name }) => name).sort(), ['etcd-2', 'etcd-3', 'etcd-4'])
  assert.deepEqual(fs.readdirSync(path.join(dir, 'etcd')).sort(), ['etcd-2', 'etcd-3', 'etcd-4'])
  const added = (await status()).etcd.find(({ name }) => name === 'etcd-4')
  assert.match(etcdctl(added?.url ?? '', 'get', '/registry/configmaps/default/second', '--keys-only').toString(), /second/)
  await eventually(
    'an answer',
    30_000,
    async () => (await cluster.kubectl(['get', 'configmap', 'second'])).code,
    (code) => code === 0,
  )
})

test('ETC-09 the last member that the running server asks is not removed, and no name is given twice', options, async () => {
  const removed = await cluster.skiff(['etcd', 'member', 'remove', 'etcd-2', '-q'])
  assert.equal(removed.code, 0, removed.stderr)
  const refused = await cluster.skiff(['etcd', 'member', 'remove', 'etcd-3', '-q'])
  assert.match(refused.stderr, /asks only member "etcd-3"/)
  assert.equal((await cluster.skiff(['etcd', 'member', 'remove', 'etcd-4', '-q'])).code, 0)
  const added = await cluster.skiff(['etcd', 'member', 'add', '-q'])
  assert.equal(added.stdout, 'etcd-5\n', added.stderr)
  await cluster.must(['get', 'configmap', 'second'])
})

test('ETC-10 stop ends the members, start finds the objects again', options, async () => {
  const pids = (await status()).pids.filter(({ role }) => role === 'etcd').map(({ pid }) => pid)
  assert.equal((await cluster.skiff(['stop', cluster.name])).code, 0)
  for (const pid of pids) assert.ok(hasEnded(pid), `${pid} runs`)
  const started = await cluster.skiff(['start', cluster.name])
  assert.equal(started.code, 0, started.stderr)
  for (const name of ['first', 'second']) await cluster.must(['get', 'configmap', name])
  const changed = await cluster.skiff(['up', cluster.name, '--etcd', '5'])
  assert.match(changed.stderr, /cannot be changed: --etcd 5 was asked for, it was made with 3/)
})

test('ETC-18 prune ends the members of a cluster whose folder was removed, and delete of it is no error', options, async () => {
  const pids = (await status()).pids.map(({ pid }) => pid)
  fs.rmSync(dir, { recursive: true })
  const pruned = await cluster.skiff(['prune'])
  assert.equal(pruned.code, 0, pruned.stderr)
  for (const pid of pids) assert.ok(hasEnded(pid), `${pid} runs`)
  assert.ok(!fs.existsSync(dir))
})

test('ETC-18 delete leaves no process and no file', options, async () => {
  const other = await LocalCluster.start('e2e-etcd-1', ['--etcd', '1', '--runtime', 'simulated', '--simulated-nodes', '1'])
  const { pids } = JSON.parse((await other.skiff(['status', '-o', 'json'])).stdout) as Status
  assert.deepEqual(pids.map(({ role }) => role).filter((role) => role === 'etcd').length, 1)
  assert.equal((await other.skiff(['delete', 'e2e-etcd-1', '-q'])).code, 0)
  for (const { pid } of pids) assert.ok(hasEnded(pid), `${pid} runs`)
  assert.deepEqual(fs.readdirSync(path.join(other.dir, 'home/clusters')), [])
  fs.rmSync(other.dir, { recursive: true })
})
