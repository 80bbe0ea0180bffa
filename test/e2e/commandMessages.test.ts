/** What the commands say where they cannot do what they are asked: one clear line and a way out, never a stack trace. Simulated clusters, the built program. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { eventually, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const obstacle = obstacleToCluster(false)
const options = { skip: obstacle, timeout: 120_000 }
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-messages-'))
const home = path.join(directory, 'home')
const clusterDir = (name: string) => path.join(home, 'clusters', name)
const isRoot = process.getuid?.() === 0

function start(words: readonly string[], env: NodeJS.ProcessEnv = {}, as: { uid?: number } = {}) {
  const all = { ...process.env, HOME: directory, SKIFF_HOME: home, KUBECONFIG: path.join(directory, 'kubeconfig'), ...env }
  const child = spawn(process.execPath, [skiffBin, ...words], { env: all, stdio: ['ignore', 'pipe', 'pipe'], ...as })
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(([stdout, stderr, [code]]) => ({ code, stdout, stderr }))
  return { child, ended }
}
const skiff = (words: readonly string[], env?: NodeJS.ProcessEnv, as?: { uid?: number }) => start(words, env, as).ended
const up = (name: string, ...flags: string[]) => ['up', name, '--runtime', 'simulated', ...flags]

after(async () => {
  if (!obstacle) await skiff(['delete', '--all', '-q'])
  fs.rmSync(directory, { recursive: true, force: true })
})

/** Nothing but these lines: no stack trace. */
function assertSays({ stderr }: { stderr: string }, pattern: RegExp): void {
  assert.match(stderr, pattern)
  assert.doesNotMatch(stderr, /^ {4}at /m)
  assert.ok(stderr.split('\n').length <= 8, stderr)
}

const file = path.join(directory, 'file')
fs.writeFileSync(file, '')
const refusals: { name: string; words: string[]; env?: NodeJS.ProcessEnv; code: number; says: RegExp }[] = [
  {
    name: 'a SKIFF_HOME that is a file',
    words: up('q'),
    env: { SKIFF_HOME: file },
    code: 6,
    says: /^error: \S+\/file\/clusters: a file stands where a directory is needed$/m,
  },
  // Node's recursive mkdir never returns here.
  {
    name: 'a SKIFF_HOME that cannot be made',
    words: up('q'),
    env: { SKIFF_HOME: '/proc/skiff' },
    code: 6,
    says: /^error: \/proc\/skiff does not exist and cannot be made$/m,
  },
  {
    name: 'a kubeconfig that cannot be written',
    words: up('q', '--kubeconfig', '/proc/x/config'),
    code: 6,
    says: /^hint: name another kubeconfig with --kubeconfig, or change none/m,
  },
  {
    name: 'a HOME that cannot be made',
    words: up('q'),
    env: { HOME: '/proc/x', KUBECONFIG: '' },
    code: 6,
    says: /^error: \/proc\/x does not exist and cannot be made$/m,
  },
]
for (const { name, words, env, code, says } of refusals) {
  test(`up refuses ${name} before anything is made`, options, async () => {
    const result = await skiff(words, env)
    assertSays(result, says)
    assert.equal(result.code, code)
    assert.ok(!fs.existsSync(clusterDir('q')))
  })
}

const lowPorts = Number(
  fs.existsSync('/proc/sys/net/ipv4/ip_unprivileged_port_start') ? fs.readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8') : 0,
)
const nobody = 65_534
/** Whether a user without rights can run the program of this checkout. */
const isReadable = () => spawnSync(process.execPath, ['-e', 'fs.accessSync(process.argv[1])', skiffBin], { uid: nobody, cwd: '/' }).status === 0
test('up --port 80 without the right says so, and not that the port is in use', {
  ...options,
  skip: obstacle || (isRoot && lowPorts > 80 && isReadable() ? false : 'needs root, ports that only root may use, and a checkout that others may read'),
}, async (t) => {
  // The folder of the run is root's alone.
  const place = fs.mkdtempSync('/var/tmp/skiff-messages-')
  t.after(() => fs.rmSync(place, { recursive: true }))
  fs.chownSync(place, nobody, nobody)
  const result = await skiff(up('q', '--port', '80'), { HOME: place, SKIFF_HOME: place, KUBECONFIG: '' }, { uid: nobody })
  assertSays(result, /^error: this user has no right to listen on port 80 of 127\.0\.0\.1$/m)
  assert.equal(result.code, 6)
  const foreign = await skiff(up('q'), { HOME: place, SKIFF_HOME: home, KUBECONFIG: '' }, { uid: nobody })
  assertSays(foreign, /^error: this user has no right to use \S+\/home/m)
})

test('up names a port that another program uses, and makes nothing', options, async () => {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const result = await skiff(up('q', '--port', String(port)))
  server.close()
  assertSays(result, new RegExp(`port ${port} of 127\\.0\\.0\\.1, .* is in use`))
  assert.equal(result.code, 7)
  assert.ok(!fs.existsSync(clusterDir('q')))
})

test('up -v on a running cluster says that it changes nothing', options, async () => {
  assert.equal((await skiff(up('v'))).code, 0)
  const again = await skiff(['up', 'v', '-v', '5'])
  assert.match(again.stderr, /^Cluster "v" runs: -v 5 changes nothing\. It is for a start: skiff stop v; skiff start v -v 5$/m)
  assert.equal(again.code, 0)
  assert.equal((await skiff(['delete', 'v'])).code, 0)
})

test('a damaged cluster.json hides no other cluster from ls, and the cluster can be deleted', options, async () => {
  for (const name of ['good', 'bad']) assert.equal((await skiff(up(name))).code, 0)
  fs.writeFileSync(path.join(clusterDir('bad'), 'cluster.json'), '{"name": "ba')
  const list = await skiff(['ls'])
  assert.match(list.stdout, /^good +Ready/m)
  assertSays(list, /^error: cluster "bad": \S+cluster\.json is damaged: /m)
  assertSays(await skiff(['status', 'bad']), /^hint: .*skiff delete bad$/m)
  const removed = await skiff(['delete', '--all', '-q'])
  assert.equal(removed.code, 1, removed.stderr)
  assertSays(removed, /cluster "bad": \S+cluster\.json is damaged: .*kubeconfig files that its description named may still have its entry/)
  assert.deepEqual([fs.existsSync(clusterDir('good')), fs.existsSync(clusterDir('bad'))], [false, false])
  assert.deepEqual(processesOf('bad'), [])
})

test('a cluster of a newer data format is refused with what can open it', options, async () => {
  fs.mkdirSync(clusterDir('newer'), { recursive: true })
  fs.writeFileSync(path.join(clusterDir('newer'), 'cluster.json'), JSON.stringify({ format: 1000, name: 'newer', id: '0000', nodes: [], simulatedNodes: [] }))
  const result = await skiff(['start', 'newer'])
  assertSays(
    result,
    /^error: cluster "newer" has the data format 1000, and this version of Skiff reads formats up to 2\nhint: .*npx skiff@latest start newer$/m,
  )
  assert.equal(result.code, 6)
  assert.equal((await skiff(['delete', 'newer'])).code, 1)
  assert.ok(!fs.existsSync(clusterDir('newer')))
})

test('an interrupted up says what remains and how to remove it', options, async () => {
  const { child, ended } = start(up('half'))
  await eventually('the description of the cluster', 10_000, async () => fs.existsSync(path.join(clusterDir('half'), 'cluster.json')), Boolean)
  child.kill('SIGINT')
  const result = await ended
  assertSays(
    result,
    /^error: interrupted\nhint: cluster "half" may have been started in part: skiff up half continues, skiff delete half removes what was made$/m,
  )
  assert.equal(result.code, 130)
  assert.equal((await skiff(['delete', 'half'])).code, 0)
})

test('delete during up ends up with one line, and removes what it made', options, async () => {
  const upping = start(up('both'))
  await eventually('the description of the cluster', 10_000, async () => fs.existsSync(path.join(clusterDir('both'), 'cluster.json')), Boolean)
  const removed = await skiff(['delete', 'both'])
  assert.equal(removed.code, 0, removed.stderr)
  const result = await upping.ended
  assertSays(result, /^error: another command deletes the cluster$/m)
  assert.equal(result.code, 7)
  assert.ok(!fs.existsSync(clusterDir('both')))
  assert.deepEqual(processesOf('both'), [])
})

test('a cluster whose directory is removed ends by itself', options, async () => {
  assert.equal((await skiff(up('gone'))).code, 0)
  assert.equal(processesOf('gone').length, 2)
  fs.rmSync(clusterDir('gone'), { recursive: true, maxRetries: 10, retryDelay: 100 })
  await eventually(
    'the end of its processes',
    10_000,
    async () => processesOf('gone'),
    (found) => found.length === 0,
  )
})

test('up names the line of the log that says why the server ended, and leaves nothing running', options, async () => {
  const policy = path.join(directory, 'policy.yaml')
  fs.writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n')
  const flags = ['--kube-apiserver-arg', `audit-policy-file=${policy}`, '--kube-apiserver-arg', 'audit-log-path=-']
  const made = await skiff(up('why', ...flags))
  assert.equal(made.code, 0, made.stderr)
  assert.equal((await skiff(['stop', 'why'])).code, 0)
  fs.rmSync(policy)
  const result = await skiff(['start', 'why'])
  assertSays(result, /^error: the server ended while it started: exit code 1\n {2}server\.log: skiff: \S*policy\.yaml.*\nhint: the logs are in /m)
  assert.equal(result.code, 1)
  assert.deepEqual(processesOf('why'), [])
  assert.equal((await skiff(['delete', 'why'])).code, 0)
})

test('delete takes a cluster out of the kubeconfig that was named at up', options, async () => {
  const kubeconfig = path.join(directory, 'named')
  assert.equal((await skiff(up('config', '--kubeconfig', kubeconfig))).code, 0)
  assert.match(fs.readFileSync(kubeconfig, 'utf8'), /skiff-config/)
  assert.equal((await skiff(['delete', 'config'])).code, 0)
  assert.doesNotMatch(fs.readFileSync(kubeconfig, 'utf8'), /skiff-config/)
})

/** Command lines of the processes of a cluster. */
function processesOf(name: string): string[] {
  const commands = fs.readdirSync('/proc').flatMap((pid) => {
    try {
      return [fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')]
    } catch {
      return []
    }
  })
  return commands.filter((command) => command.includes(`--cluster-dir ${clusterDir(name)} `))
}
