import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { Command } from 'commander'
import { printableLines } from '#base/printable'
import { VirtualClock } from '#base/virtualClock'
import type { ClusterManager, ClusterStatus } from '../clusterManager.ts'
import type { CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { commands } from './index.ts'

const running: ClusterStatus = {
  name: 'a',
  server: 'https://127.0.0.1:40000',
  running: true,
  ready: true,
  nodes: [{ name: 'a-node-1', ready: true, runtime: 'containerd', address: '10.88.1.10' }],
  pids: [{ role: 'server', pid: 42 }],
  directory: '/var/lib/skiff/clusters/a',
}

/** Runs a command line against a manager that records what it is asked. */
async function run(words: string[], overrides: Partial<ClusterManager> = {}, names: string[] = ['a']) {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cli-'))
  const calls: string[] = []
  const clusters: ClusterManager = {
    names: async () => names,
    exists: async (name) => names.includes(name),
    up: async (name, options) => {
      calls.push(`up ${name} ${JSON.stringify(options)}`)
      return { created: !names.includes(name), status: { ...running, name } }
    },
    stop: async (name) => void calls.push(`stop ${name}`),
    delete: async (name, _progress, dryRun) => {
      calls.push(`delete ${name}${dryRun ? ' dry' : ''}`)
      return ['bridge skiff-0000']
    },
    status: async (name) => ({ ...running, name }),
    ask: async () => undefined,
    logFiles: async () => [],
    kubeconfig: async (name) => ({ name: `skiff-${name}`, server: running.server, ca: 'CA', clientCert: 'C', clientKey: 'K' }),
    rememberKubeconfig: async (name, file, previous) => void calls.push(`remember ${name} ${path.relative(home, file)} ${previous}`.trim()),
    kubeconfigs: async () => [],
    certificates: async () => [],
    renewCertificates: async (name) => void calls.push(`renew ${name}`),
    loadImages: async (name, files) => {
      calls.push(`load ${name} ${files.length}`)
      return [{ node: 'a-node-1', names: ['docker.io/library/web:1'] }]
    },
    images: async () => [],
    ...overrides,
  }
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const context: CommandContext = {
    clusters,
    clock: new VirtualClock(),
    exec: { run: async () => ({ code: -1, stdout: '', stderr: '', timedOut: false }), spawn: () => assert.fail('nothing is spawned') },
    env: {},
    home,
    isRoot: true,
    platform: 'linux',
    stdout: { write: (text) => void stdout.push(text), isTTY: false },
    stderr: { write: (text) => void stderr.push(text), isTTY: false },
  }
  const program = new Command('skiff').exitOverride()
  for (const command of commands) command.register(program, context)
  let error: unknown
  await program.parseAsync(['node', 'skiff', ...words]).catch((caught) => {
    error = caught
  })
  const kubeconfig = await fs.readFile(path.join(home, '.kube/config'), 'utf8').catch(() => '')
  await fs.rm(home, { recursive: true, force: true })
  return { calls, stdout: stdout.join(''), stderr: stderr.join(''), error, kubeconfig }
}

test('up merges the kubeconfig and ends with one command to try', async () => {
  const { calls, stderr, kubeconfig } = await run(['up', 'b', '--nodes', '2', '--simulated-nodes', '3'])
  assert.deepEqual(calls, ['up b {"nodes":2,"simulatedNodes":3}', 'remember b .kube/config'])
  assert.match(kubeconfig, /current-context: skiff-b/)
  assert.match(stderr, /Cluster "b" is up .*context skiff-b\nTry: {2}kubectl --context skiff-b get nodes\n$/)
})

/** A configuration file for one test. */
async function inFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cli-config-'))
  const file = path.join(directory, 'skiff.yaml')
  await fs.writeFile(file, text)
  return use(file).finally(() => fs.rm(directory, { recursive: true }))
}

test('up --config reads flags from a file, and the command line wins', async () => {
  const text = 'name: dev\nnodes: 2\nsimulated-nodes: 3\nv: 4\nkubeconfig: false\nkube-apiserver-arg: [audit-log-path=/a, v=2]\n'
  const { calls, kubeconfig, error } = await inFile(text, (file) => run(['up', '--config', file, '--nodes', '5']))
  assert.equal(error, undefined)
  assert.deepEqual(calls, ['up dev {"nodes":5,"simulatedNodes":3,"verbosity":4,"apiServerArgs":["--audit-log-path=/a","--v=2"]}'])
  assert.equal(kubeconfig, '')
  assert.match((await inFile(text, (file) => run(['up', 'other', '--config', file]))).calls[0] ?? '', /^up other /)
})

for (const [text, message] of [
  ['node: 2', /unknown key "node"; the keys are name, nodes, simulated-nodes, runtime/],
  ['nodes: {a: 1}', /nodes: expected a text or a number/],
  ['nodes: 100', /--nodes 100: expected a whole number from 0 to 20/],
  ['quiet: "yes"', /quiet: expected true or false/],
  ['kube-scheduler-arg: config=/a', /kube-scheduler-arg: expected a list of texts/],
  ['- nodes', /expected a map of flags/],
  ['a: [', /skiff\.yaml: /],
] as const) {
  test(`up --config is refused for ${text}`, async () => {
    const { error, calls } = await inFile(text, (file) => run(['up', '--config', file]))
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.match(error.message, message)
    assert.deepEqual(calls, [])
  })
}

test('up --config is refused for a file that does not exist', async () => {
  const { error } = await run(['up', '--config', '/nonexistent.yaml'])
  assert.ok(error instanceof CommandError && error.exit === 'notFound', String(error))
})

test('ls -q prints the names only', async () => {
  assert.equal((await run(['ls', '-q'], {}, ['a', 'b'])).stdout, 'a\nb\n')
})

/** Completes the last of `words` with bash and the script that the command prints. */
async function completions(...words: string[]): Promise<string[]> {
  const { stdout } = await run(['completion', 'bash'])
  const program = `skiff() { echo mine; }\n${stdout}\nCOMP_WORDS=(skiff "$@"); COMP_CWORD=$#; _skiff; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', program, 'bash', ...words], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
}

test('completion bash completes commands, subcommands, flags and names of clusters', async () => {
  assert.deepEqual(await completions('st'), ['stop', 'start', 'status'])
  assert.deepEqual(await completions('certs', 'c'), ['check'])
  assert.deepEqual(await completions('up', '--kube-s'), ['--kube-scheduler-arg'])
  assert.deepEqual(await completions('delete', 'm'), ['mine'])
  assert.deepEqual(await completions('delete', '--all', '--d'), ['--dry-run'])
})

for (const [shell, line] of [
  ['zsh', /^ {4}'certs'\)\n {6}candidates=\('check:.*' 'renew:/m],
  ['fish', /^complete -c skiff -f -n '__fish_seen_subcommand_from certs; and not __fish_seen_subcommand_from check renew.*' -a check -d '/m],
] as const) {
  test(`completion ${shell} names the subcommands of certs with their descriptions`, async () => {
    assert.match((await run(['completion', shell])).stdout, line)
  })
}

test('--no-kubeconfig leaves every kubeconfig alone', async () => {
  assert.equal((await run(['up', '--no-kubeconfig'])).kubeconfig, '')
})

test('status -o json prints exactly the documented shape', async () => {
  const { stdout } = await run(['status', '-o', 'json'])
  assert.deepEqual(JSON.parse(stdout), running)
})

test('ls prints a table', async () => {
  const { stdout } = await run(['ls'], {}, ['a', 'b'])
  assert.equal(stdout, 'NAME   STATE   NODES   SERVER\na      Ready   1       https://127.0.0.1:40000\nb      Ready   1       https://127.0.0.1:40000\n')
})

test('delete of what is not there is fine; --dry-run deletes nothing', async () => {
  assert.deepEqual((await run(['delete', 'gone'])).calls, [])
  const { calls, stdout } = await run(['delete', 'a', '--dry-run'])
  assert.deepEqual(calls, ['delete a dry'])
  assert.equal(stdout, 'would remove bridge skiff-0000\n')
})

const refusals: { words: string[]; names?: string[]; exit: CommandError['exit']; text: RegExp }[] = [
  { words: ['up', 'Bad_Name'], exit: 'usage', text: /no cluster name/ },
  { words: ['up', '--nodes', 'many'], exit: 'usage', text: /--nodes many: expected a whole number/ },
  { words: ['up', '--runtime', 'docker'], exit: 'usage', text: /expected auto, containerd, simulated/ },
  { words: ['status', 'nope'], exit: 'notFound', text: /there is no cluster "nope"/ },
  { words: ['delete'], names: ['a', 'b'], exit: 'usage', text: /there is no cluster "skiff"; the clusters are a, b/ },
  { words: ['why', 'deploy/web'], exit: 'usage', text: /"deploy\/web" is no pod: only pods are scheduled/ },
  { words: ['stop'], names: ['a', 'b'], exit: 'usage', text: /several clusters: a, b/ },
  { words: ['status'], names: [], exit: 'notFound', text: /there is no cluster/ },
  { words: ['image', 'load', '/nonexistent.tar'], exit: 'notFound', text: /is no file/ },
  { words: ['logs', '--tail', 'all'], exit: 'usage', text: /--tail all: expected a whole number/ },
  { words: ['completion', 'tcsh'], exit: 'usage', text: /tcsh: expected bash, zsh, fish/ },
  { words: ['doctor'], exit: 'unmetPrerequisite', text: /real nodes cannot run here/ },
]
for (const c of refusals) {
  test(`skiff ${c.words.join(' ')} with clusters [${c.names ?? 'a'}] is refused: ${c.exit}`, async () => {
    const { error } = await run(c.words, {}, c.names)
    assert.ok(error instanceof CommandError, String(error))
    assert.equal(error.exit, c.exit)
    assert.match(error.message, c.text)
  })
}

test('delete takes the entry out of every kubeconfig that up put it into', async () => {
  const other = path.join(await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cli-other-')), 'config')
  await fs.writeFile(other, 'contexts: [{name: skiff-a, context: {}}, {name: mine, context: {}}]\ncurrent-context: skiff-a\n')
  await run(['delete', 'a'], { kubeconfigs: async () => [{ file: other, previousContext: 'mine' }] })
  const text = await fs.readFile(other, 'utf8')
  await fs.rm(path.dirname(other), { recursive: true })
  assert.doesNotMatch(text, /skiff-a/)
  assert.match(text, /current-context: mine/)
})

test('certs check lists leaves, then authorities, with the time they have left; certs renew renews', async () => {
  const now = new VirtualClock().now()
  const certificates = async () => [
    { name: 'ca', expiresMs: now + 3650 * 86_400_000, isAuthority: true, authority: 'kubernetes' },
    { name: 'apiserver', expiresMs: now + 90 * 86_400_000, isAuthority: false, authority: 'kubernetes' },
  ]
  const { stdout } = await run(['certs', 'check', 'a'], { certificates })
  assert.match(stdout, /^CERTIFICATE +EXPIRES +RESIDUAL TIME +AUTHORITY\napiserver +\S+Z +90d +kubernetes\nca +\S+Z +10y *\n$/)
  assert.deepEqual((await run(['certs', 'renew', 'a'])).calls, ['renew a'])
})

/** Ends the line and the color before, forges a line of its own, and turns the direction of what follows. */
const hostile = 'x\u001b[2K\r\nyes: all is well\u009b1m\u202e\u2028'

/** Answers every question with these by the end of their path, with no success where there is none. */
const cluster = (answers: Readonly<Record<string, unknown>>): Partial<ClusterManager> => ({
  ask: async (_name, path) => {
    const found = Object.entries(answers).find(([end]) => path.split('?')[0]?.endsWith(end))
    return found ? { status: 200, body: JSON.stringify(found[1]) } : { status: 404, body: JSON.stringify({ message: `no ${hostile}` }) }
  },
})
const subjects = [{ kind: 'User', name: 'jane' }]
const why = {
  access: cluster({
    '/apis': { groups: [{ name: hostile, preferredVersion: { groupVersion: 'x/v1' } }] },
    '/api/v1': { resources: [{ name: 'pods', singularName: 'pod', kind: 'Pod', namespaced: true }] },
    '/subjectaccessreviews': { status: { allowed: false, reason: hostile } },
    '/clusterrolebindings': { items: [{ metadata: { name: hostile }, subjects, roleRef: { kind: 'ClusterRole', name: hostile } }] },
    '/rolebindings': { items: [] },
    [`/clusterroles/${encodeURIComponent(hostile)}`]: { rules: [{ apiGroups: ['*'], resources: ['pods'], verbs: ['get'], resourceNames: [hostile] }] },
  }),
  namespace: cluster({
    '/namespaces/a': {
      metadata: { deletionTimestamp: hostile, finalizers: [hostile] },
      status: { conditions: [{ type: hostile, status: 'True', message: hostile }] },
    },
    '/apis': { groups: [] },
    '/api/v1': { resources: [{ name: hostile, namespaced: true, verbs: ['list', 'delete'] }] },
    [`/${hostile}`]: { metadata: {}, items: [{ metadata: { name: hostile, finalizers: [hostile] } }] },
  }),
}
const printed = [
  { name: 'why can', words: ['why', 'can', 'jane', 'list', 'pods'], overrides: why.access },
  { name: 'why ns', words: ['why', 'ns/a'], overrides: why.namespace },
  { name: 'status', words: ['status'], overrides: { status: async () => ({ ...running, directory: hostile, pids: [{ role: hostile, pid: 1 }] }) } },
  { name: 'image ls', words: ['image', 'ls'], overrides: { images: async () => [{ node: 'n', name: hostile, bytes: 1 }] } },
  { name: 'delete --dry-run', words: ['delete', 'a', '--dry-run'], overrides: { delete: async () => [hostile] } },
  {
    name: 'certs check',
    words: ['certs', 'check'],
    overrides: { certificates: async () => [{ name: hostile, expiresMs: 0, isAuthority: false, authority: hostile }] },
  },
] as unknown as readonly { name: string; words: string[]; overrides: Partial<ClusterManager> }[]
for (const { name, words, overrides } of printed) {
  test(`${name} prints a name with control characters and line ends as part of its line`, async () => {
    const { stdout, error } = await run(words, overrides)
    assert.equal(error, undefined)
    assert.ok(stdout.includes('x\\u001b[2K\\u000d\\u000ayes: all is well'), stdout)
    assert.equal(stdout, printableLines(stdout))
    assert.doesNotMatch(stdout, /^yes/m)
  })
}

test('why can prints a user with line ends as part of its line', async () => {
  const { stdout } = await run(['why', 'can', 'a\nyes: a', 'list', 'pods'], why.access)
  assert.match(stdout, /^no: a\\u000ayes: a list pods in default$/m)
})
