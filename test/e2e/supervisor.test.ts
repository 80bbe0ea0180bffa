/**
 * What brings a cluster's processes back: the server, a node's agent and a node's process 1 are stopped or killed, one by one and together, with and without
 * the supervisor. Real containerd, real kernel. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 120_000 }
const name = 'e2e-life'
const nodeName = `${name}-node-1`
/** The pause before a restart, and what a look at a process that is no child takes longer. */
const restartMs = 1000
/** The longest pause before a restart, with the restart: a process that ended soon after its start is held back. */
const backOffMs = 11_000
const readyMs = 20_000
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

interface Status {
  readonly ready: boolean
  readonly supervised: boolean
  readonly nodes: readonly { readonly name: string; readonly ready: boolean }[]
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
  readonly restarts: readonly { readonly what: string; readonly count: number; readonly lastMs: number; readonly ending: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
const pidOf = async (role: string) => (await status()).pids.find((one) => one.role === role)?.pid ?? 0
const restartsOf = async (what: string) => (await status()).restarts.find((one) => one.what === what)
const isReady = (found: Status) => found.ready
const ready = () => eventually('readiness', readyMs, status, isReady)
const clusterDir = () => path.join(cluster.dir, 'home', 'clusters', name)

async function kill(role: string): Promise<number> {
  const pid = await pidOf(role)
  assert.ok(pid > 1, `${role} runs`)
  process.kill(pid, 'SIGKILL')
  return pid
}

/** The pid in a pid file, once it is another one than before. */
async function nextPid(file: string, earlier: number, withinMs: number): Promise<number> {
  const read = async () => (JSON.parse(fs.readFileSync(path.join(clusterDir(), file), 'utf8')) as { pid: number }).pid
  return eventually(`another process in ${file}`, withinMs, read, (pid) => pid !== earlier)
}

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, [])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

test('a server that is killed starts again within a second, and status and crashes.log say so', options, async () => {
  const killed = await kill('server')
  await nextPid('server.pid', killed, restartMs)
  await ready()
  const restarted = await restartsOf('server')
  assert.deepEqual([restarted?.count, restarted?.ending], [1, 'signal SIGKILL'])
  assert.match((await cluster.skiff(['status', name])).stdout, /^server +1 +\S+Z +signal SIGKILL$/m)
  assert.match(fs.readFileSync(path.join(clusterDir(), 'crashes.log'), 'utf8'), /^\S+Z server ended: signal SIGKILL \(1 in all\)\n {4}\S/)
})

test('a server outlives its supervisor, status says so, and start brings back a supervisor that takes the server over', options, async () => {
  const [server] = [await pidOf('server'), await kill('supervisor')]
  const found = await eventually('the end of the supervisor', 5000, status, ({ supervised }) => !supervised)
  assert.deepEqual([found.ready, found.pids.find(({ role }) => role === 'server')?.pid], [true, server])
  assert.match((await cluster.skiff(['status', name])).stdout, /The supervisor does not run: .* skiff start e2e-life$/m)
  const started = await cluster.skiff(['start', name])
  assert.equal(started.code, 0, started.stderr)
  assert.deepEqual([await pidOf('server'), (await status()).supervised], [server, true])
  process.kill(server, 'SIGKILL')
  await nextPid('server.pid', server, 2 * restartMs)
  await ready()
})

test('an agent that was stopped and continued is replaced after it is killed', options, async () => {
  const agent = await pidOf('node')
  process.kill(agent, 'SIGSTOP')
  await eventually(
    'the stop of the agent',
    5000,
    async () => stateOf(agent),
    (state) => state === 'T',
  )
  process.kill(agent, 'SIGCONT')
  await ready()
  process.kill(agent, 'SIGKILL')
  await eventually(
    'another agent',
    readyMs,
    () => pidOf('node'),
    (pid) => pid !== 0 && pid !== agent,
  )
  await ready()
  assert.deepEqual(processesInState('T', /nsenter/), [])
})

test('server and agent killed at once come back, also when the agent was stopped, and an old Ready condition is not trusted meanwhile', options, async () => {
  for (const pid of [await pidOf('node'), await pidOf('server')]) process.kill(pid, 'SIGKILL')
  await eventually('readiness of the new server', readyMs, status, ({ ready: isUp, pids }) => isUp && pids.some(({ role }) => role === 'node'))
  const agent = await pidOf('node')
  process.kill(agent, 'SIGSTOP')
  const server = await kill('server')
  await nextPid('server.pid', server, backOffMs)
  // The node's condition stays True for 40 s after its last heartbeat.
  const condition = ['get', 'node', nodeName, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']
  await eventually(
    'an answer of the new server',
    readyMs,
    () => cluster.kubectl(condition),
    ({ code }) => code === 0,
  )
  if (stateOf(agent) === 'T') assert.deepEqual([await cluster.must(condition), (await status()).ready], ['True', false])
  await ready()
  assert.notEqual(await pidOf('node'), agent)
})

test('a node whose process 1 is killed starts again by itself, also while a stopped process outside holds a process of it', options, async () => {
  const init = await kill('init')
  await eventually(
    'another process 1',
    readyMs,
    () => pidOf('init'),
    (pid) => pid !== 0 && pid !== init,
  )
  await ready()
  assert.equal((await restartsOf(nodeName))?.count, 1)
  const held = await pidOf('init')
  const enter = spawn('nsenter', ['-t', String(held), '-p', '--', 'sleep', '600'], { stdio: 'ignore' })
  await once(enter, 'spawn')
  await eventually(
    'the child of nsenter',
    5000,
    async () => childOf(enter.pid ?? 0),
    (pid) => pid !== undefined,
  )
  enter.kill('SIGSTOP')
  try {
    process.kill(held, 'SIGKILL')
    await eventually(
      'another process 1',
      readyMs,
      () => pidOf('init'),
      (pid) => pid !== 0 && pid !== held,
    )
    await ready()
  } finally {
    enter.kill('SIGKILL')
  }
})

test('no agent has warned of too many listeners, and an image file that is no tar is refused with the reason', options, async () => {
  const log = fs.readFileSync(path.join(clusterDir(), 'nodes', nodeName, 'agent.log'), 'utf8')
  assert.doesNotMatch(log, /MaxListenersExceededWarning/)
  const file = path.join(cluster.dir, 'broken.tar')
  fs.writeFileSync(file, 'x'.repeat(2000))
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', name, file])
  assert.equal(code, 1)
  assert.match(stderr, /^error: \S+broken\.tar cannot be loaded: \S/m)
  assert.doesNotMatch(stderr, /^ {4}at /m)
})

test('a server that is killed with its supervisor and its node comes back with up, and stop keeps all of it stopped', options, async () => {
  for (const role of ['supervisor', 'server', 'init']) await kill(role)
  const up = await cluster.skiff(['up', name])
  assert.equal(up.code, 0, up.stderr)
  assert.ok(isReady(await status()))
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  const { pids, supervised } = await status()
  assert.deepEqual([supervised, pids.map(({ role }) => role).sort()], [false, ['containerd', 'init']])
})

test('delete removes a cluster whose server and supervisor are stopped by a signal, and leaves the host as it was', options, async () => {
  assert.equal((await cluster.skiff(['start', name])).code, 0)
  for (const role of ['supervisor', 'server']) process.kill(await pidOf(role), 'SIGSTOP')
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})

function stateOf(pid: number): string | undefined {
  return /^State:\s+(\w)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
}

function childOf(pid: number): number | undefined {
  return Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]) || undefined
}

/** Command lines of processes in that state. */
function processesInState(state: string, pattern: RegExp): string[] {
  const pids = fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))
  const found = pids.flatMap((pid) => {
    try {
      return stateOf(Number(pid)) === state ? [fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')] : []
    } catch {
      return []
    }
  })
  return found.filter((command) => pattern.test(command))
}
