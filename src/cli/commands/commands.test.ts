import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { printableLines } from '#base/printable'
import { VirtualClock } from '#base/virtualClock'
import { runCommand as run, running } from '#testing/commandRun'
import type { ClusterManager } from '../clusterManager.ts'
import { CommandError } from '../exitCodes.ts'
import { publicKeyHash } from '../publicKeyHash.ts'

test('up merges the kubeconfig and ends with commands to try, and with a source of kubectl when the PATH has none', async () => {
  const { calls, stderr, kubeconfig, interruptions } = await run(['up', 'b', '--nodes', '2', '--simulated-nodes', '3'])
  assert.deepEqual(calls, ['up b {"nodes":2,"simulatedNodes":3}', 'remember b .kube/config'])
  assert.match(kubeconfig, /current-context: skiff-b/)
  const [, try_ = ''] = /Cluster "b" is up .*context skiff-b\n(Try:[\s\S]*)$/.exec(stderr) ?? []
  const [nodes, image, deployment, status, kubectl] = try_.split('\n')
  assert.deepEqual(
    [nodes, image, deployment, status],
    [
      'Try:  kubectl --context skiff-b get nodes',
      '      docker save web:1.0 -o web.tar; skiff image load --name b web.tar',
      '      kubectl --context skiff-b create deployment web --image=web:1.0',
      '      skiff status b',
    ],
  )
  assert.match(kubectl ?? '', /^kubectl is not on the PATH\. Get it with: curl -LO https:\/\/dl\.k8s\.io\/release\/v1\.36\.0\/bin\/linux\/\w+\/kubectl$/)
  assert.match(interruptions.join(), /skiff up b continues, skiff delete b removes/)
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

test('HA-05 up --config reads a file of kubeadm, warns by path, and the command line wins', async () => {
  const text = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: lab
networking: {podSubnet: 10.245.0.0/16}
etcd: {external: {endpoints: [http://10.0.0.9:2379]}}
apiServer: {extraArgs: [{name: audit-log-path, value: /a}, {name: unheard-of, value: x}]}
`
  const { calls, stderr, error } = await inFile(text, (file) => run(['up', '--config', file, '--pod-cidr', '10.246.0.0/16', '--no-kubeconfig']))
  assert.equal(error, undefined)
  assert.deepEqual(calls, ['up lab {"podCidr":"10.246.0.0/16","apiServerArgs":["--etcd-servers=http://10.0.0.9:2379","--audit-log-path=/a"]}'])
  assert.match(stderr, /^warning: .*skiff\.yaml: apiServer\.extraArgs\[1\]: left out, kube-apiserver .* has no flag --unheard-of$/m)
})

test('HA-05 up --config names the file and the path of a fault in a file of kubeadm', async () => {
  const text = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer: {certSANs: a}\n'
  const { calls, error } = await inFile(text, (file) => run(['up', '--config', file]))
  assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
  assert.match(error.message, /skiff\.yaml: apiServer\.certSANs: expected a list$/)
  assert.deepEqual(calls, [])
})

test('SVC-09 up --disable-kube-proxy asks for no service proxy, and goes with no other mode', async () => {
  assert.deepEqual((await run(['up', 'b', '--no-kubeconfig', '--disable-kube-proxy'])).calls, ['up b {"proxyMode":"none"}'])
  const { error } = await run(['up', 'b', '--disable-kube-proxy', '--proxy-mode', 'iptables'])
  assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
})

test('NET-08 up takes the address families and the pod network, and names the possible values for another one', async () => {
  const { calls } = await run(['up', 'b', '--no-kubeconfig', '--ip-families', 'IPv4, IPv6', '--pod-network', 'vxlan'])
  assert.deepEqual(calls, ['up b {"ipFamilies":"ipv4,ipv6","podNetwork":"vxlan"}'])
  for (const [flag, wrong, expected] of [
    ['--ip-families', 'ipv6,ipv4', /expected ipv4, ipv6 or ipv4,ipv6$/],
    ['--pod-network', 'flannel', /expected host-gw, vxlan, none$/],
  ] as const) {
    const { error } = await run(['up', 'b', flag, wrong])
    assert.match(String((error as Error).message), expected)
  }
})

test('HA-01 up takes the address that other machines use, and refuses loopback', async () => {
  const flags = [
    '--apiserver-advertise-address',
    '10.0.0.1',
    '--control-plane-endpoint',
    'api.example.com',
    '--apiserver-cert-extra-sans',
    'a.example.com, 10.0.0.9',
  ]
  const { calls } = await run(['up', 'b', '--no-kubeconfig', ...flags])
  assert.deepEqual(calls, ['up b {"advertiseAddress":"10.0.0.1","controlPlaneEndpoint":"api.example.com","certNames":["a.example.com","10.0.0.9"]}'])
  const wildcard = await run(['up', 'b', '--apiserver-cert-extra-sans', '*.example.com'])
  assert.deepEqual(wildcard.calls.slice(0, 1), ['up b {"certNames":["*.example.com"]}'])
  for (const wrong of [
    ['--apiserver-advertise-address', '127.0.0.1'],
    ['--control-plane-endpoint', 'https://a'],
    ['--apiserver-cert-extra-sans', 'a.example.com,'],
    ['--apiserver-cert-extra-sans', 'https://a.example.com'],
    ['--apiserver-cert-extra-sans', 'a.*.example.com'],
  ]) {
    const { error } = await run(['up', 'b', ...wrong])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
  }
})

test('HA-01 certs upload prints a new key, or takes the given one', async () => {
  const made = await run(['certs', 'upload', 'a'])
  assert.match(made.stdout, /^[0-9a-f]{64}\n$/)
  assert.deepEqual(made.calls, [`upload a ${made.stdout.trim()}`])
  assert.deepEqual((await run(['certs', 'upload', 'a', '--certificate-key', 'k'])).calls, ['upload a k'])
  assert.deepEqual((await inFile('k\n', (file) => run(['certs', 'upload', 'a', '--certificate-key-file', file]))).calls, ['upload a k'])
  const { error } = await run(['certs', 'upload', 'a', '--certificate-key', 'k', '--certificate-key-file', 'f'])
  assert.match(String(error), /one of them is enough/)
})

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
  assert.deepEqual(JSON.parse(stdout), { ...running, simulatedNodes: { count: 0, ready: 0 } })
})

test('HA-01 status shows each of several servers, with what it leads', async () => {
  const servers = [
    { name: 'server-1', url: 'https://127.0.0.1:40001', running: true, ready: true, leads: ['controllers', 'scheduler'] },
    { name: 'server-2', url: 'https://127.0.0.1:40002', running: true, ready: false, leads: [] },
    { name: 'server-3', url: 'https://127.0.0.1:40003', running: false, ready: false, leads: [] },
  ]
  const { stdout } = await run(['status'], { status: async () => ({ ...running, servers }) })
  const table = [
    'SERVER     STATE      URL                       LEADS',
    'server-1   Ready      https://127.0.0.1:40001   controllers, scheduler',
    'server-2   NotReady   https://127.0.0.1:40002',
    'server-3   Stopped    https://127.0.0.1:40003',
  ]
  assert.ok(stdout.includes(`\n${table.join('\n')}\n`), stdout)
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
  { words: ['up', '--control-planes', '6'], exit: 'usage', text: /--control-planes 6: expected a whole number from 1 to 5/ },
  { words: ['up', '--runtime', 'docker'], exit: 'usage', text: /expected auto, containerd, simulated/ },
  { words: ['status', 'nope'], exit: 'notFound', text: /there is no cluster "nope"/ },
  { words: ['delete'], names: ['a', 'b'], exit: 'usage', text: /there is no cluster "skiff"; the clusters are a, b/ },
  { words: ['delete', 'a', '--all'], exit: 'usage', text: /expected a name or --all, not both/ },
  { words: ['net', 'policy', 'web', '--from', 'a', '--to', 'b'], exit: 'usage', text: /--from or --to, not both/ },
  { words: ['net', 'policy', 'web', '--port', '80'], exit: 'usage', text: /expected the other end too/ },
  { words: ['net', 'policy', 'web', '-o', 'yaml'], exit: 'usage', text: /expected json/ },
  { words: ['net', 'policy', 'web'], exit: 'unmetPrerequisite', text: /the cluster does not answer/ },
  { words: ['net', 'route', '-o', 'xml'], exit: 'usage', text: /-o xml: expected json or yaml/ },
  { words: ['calls', 'pod/web', '-o', 'xml'], exit: 'usage', text: /-o xml: expected json or yaml/ },
  { words: ['net', 'svc', 'web', '--context', 'x'], exit: 'usage', text: /--context needs --kubeconfig/ },
  { words: ['why', 'deploy/a/b'], exit: 'usage', text: /deploy\/a\/b: expected KIND\/NAME, or the name of a pod/ },
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

test('delete ends with 1 and says what may be left, after it took the entry out of the kubeconfig and deleted the other clusters', async () => {
  const file = path.join(await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cli-left-')), 'config')
  await fs.writeFile(file, 'contexts: [{name: skiff-a, context: {}}, {name: mine, context: {}}]\n')
  const calls: string[] = []
  const overrides: Partial<ClusterManager> = {
    delete: async (name) => {
      calls.push(name)
      return { removed: [], left: name === 'a' ? ['interface skiff-0000 is still there'] : [] }
    },
    kubeconfigs: async () => [{ file, previousContext: '' }],
  }
  const { error } = await run(['delete', '--all'], overrides, ['a', 'b'])
  assert.ok(error instanceof CommandError && error.exit === 'internal', String(error))
  assert.deepEqual(error.details, ['cluster "a": interface skiff-0000 is still there'])
  assert.deepEqual(calls, ['a', 'b'])
  const text = await fs.readFile(file, 'utf8')
  await fs.rm(path.dirname(file), { recursive: true })
  assert.doesNotMatch(text, /skiff-a/)
})

test('prune ends with 1 and says what is left', async () => {
  const { error, stdout } = await run(['prune'], { prune: async () => ({ removed: ['mount /a'], left: ['cgroup /b is still there'] }) })
  assert.ok(error instanceof CommandError && error.exit === 'internal', String(error))
  assert.deepEqual(error.details, ['cgroup /b is still there'])
  assert.equal(stdout, 'removed mount /a\n')
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

/** Ends the line and its color, forges another line, and reverses the direction of the text after it. */
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
  { name: 'delete --dry-run', words: ['delete', 'a', '--dry-run'], overrides: { delete: async () => ({ removed: [hostile], left: [] }) } },
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

test('NPO-02 net policy prints which policies select a pod, and its name as part of its line', async () => {
  const body = JSON.stringify({ metadata: { name: 'web', namespace: 'a' }, items: [] })
  const { stdout, calls } = await run(['net', 'policy', 'a/web'], { ask: async () => ({ status: 200, body }) })
  assert.deepEqual(calls, ['explain web'])
  assert.deepEqual(stdout.split('\n'), [
    'pod:       a/web\\u000aallowed: a/x',
    'address:   10.244.0.5',
    'node:      none yet',
    '',
    'ingress: only what one of these policies allows',
    '  a/front',
    '    1. from everywhere: TCP 80',
    'egress: no policy isolates the pod, everything is allowed',
    '',
  ])
})

test('why can prints a user with line ends as part of its line', async () => {
  const { stdout } = await run(['why', 'can', 'a\nyes: a', 'list', 'pods'], why.access)
  assert.match(stdout, /^no: a\\u000ayes: a list pods in default$/m)
})

test('--etcd asks for an etcd of the cluster, --etcd-servers for one that is there, with files by their full paths', async () => {
  assert.deepEqual((await run(['up', 'b', '--etcd', '3', '--no-kubeconfig'])).calls, ['up b {"etcd":3}'])
  const { calls } = await run([
    'up',
    'b',
    '--etcd-servers',
    'https://e:2379',
    '--etcd-cafile',
    '/x/../ca.crt',
    '--kube-apiserver-arg',
    'v=2',
    '--no-kubeconfig',
  ])
  assert.deepEqual(calls, ['up b {"apiServerArgs":["--etcd-servers=https://e:2379","--etcd-cafile=/ca.crt","--v=2"]}'])
  for (const [words, want] of [
    [['--etcd', '2'], '--etcd 2: expected 1, 3, 5 or embedded'],
    [['--etcd', '3', '--etcd-servers', 'https://e:2379'], '--etcd makes an etcd, --etcd-servers names one that is there: give one of them'],
    [['--etcd', '3', '--kube-apiserver-arg', 'etcd-servers=https://e:2379'], '--etcd makes an etcd, --etcd-servers names one that is there: give one of them'],
    [['--etcd-cafile', 'ca.crt'], '--etcd-cafile needs --etcd-servers'],
  ] as const) {
    const { error } = await run(['up', 'b', ...words])
    assert.ok(error instanceof CommandError && error.exit === 'usage')
    assert.equal(error.message, want)
  }
})

test('ETC-09 etcd member lists, adds, promotes and removes members of the cluster that is named', async () => {
  assert.equal(
    (await run(['etcd', 'member', 'ls'])).stdout,
    'ID   NAME     ROLE      URL                       VERSION   DB SIZE   IN USE\n' +
      'c1   etcd-1   leader    https://127.0.0.1:41000   3.4.23    20.0Mi    5.0Mi\n' +
      'c2   etcd-2   unknown   https://127.0.0.1:41002\n',
  )
  assert.deepEqual(JSON.parse((await run(['etcd', 'member', 'ls', '-o', 'json'])).stdout)[1].role, 'unknown')
  const added = await run(['etcd', 'member', 'add', '-q', '--cluster', 'b'], {}, ['a', 'b'])
  assert.deepEqual([added.calls, added.stdout], [['add b'], 'etcd-4\n'])
  assert.deepEqual((await run(['etcd', 'member', 'add', '--learner'])).calls, ['add a learner'])
  assert.deepEqual((await run(['etcd', 'member', 'promote', 'etcd-4'])).calls, ['promote a etcd-4'])
  assert.deepEqual((await run(['etcd', 'member', 'move-leader', 'etcd-2'])).calls, ['lead a etcd-2'])
  assert.deepEqual((await run(['etcd', 'member', 'defrag', 'etcd-2'])).calls, ['defragment a etcd-2'])
  assert.deepEqual((await run(['etcd', 'member', 'defrag'])).calls, ['defragment a all'])
  const removed = await run(['etcd', 'member', 'remove', 'etcd-1'])
  assert.deepEqual(removed.calls, ['remove a etcd-1'])
  assert.match(removed.stderr, /The API server asks the members of its last start: skiff stop a; skiff start a lets it ask these/)
})

test('ING-01 addon turns the ingress of a cluster on and off and lists it; up --ingress asks for it', async () => {
  const on = await run(['addon', 'enable', 'ingress', '--cluster', 'a'])
  assert.deepEqual(on.calls, ['enable ingress of a'])
  assert.match(on.stderr, /Addon ingress of cluster "a" is enabled/)
  const off = await run(['addon', 'disable', 'ingress'])
  assert.deepEqual(off.calls, ['disable ingress of a'])
  assert.match(off.stderr, /was disabled already/)
  assert.match((await run(['addon', 'ls'])).stdout, /^ADDON +ENABLED\ningress +yes\n$/)
  const unknown = await run(['addon', 'enable', 'mesh'])
  assert.ok(unknown.error instanceof CommandError && unknown.error.exit === 'usage')
  assert.deepEqual(unknown.calls, [])
  const up = await run(['up', 'a', '--ingress', '--no-kubeconfig'])
  assert.match(up.calls[0] ?? '', /"ingress":true/)
})

const snapshotCalls: readonly { readonly words: string; readonly calls?: readonly string[]; readonly out?: RegExp; readonly error?: RegExp }[] = [
  { words: 'snapshot save f.db', calls: ['save a f.db'] },
  { words: 'snapshot save f.db --cluster b', error: /there is no cluster "b"/ },
  { words: 'snapshot status f.db', out: /^HASH +REVISION +TOTAL KEYS +TOTAL SIZE +VERSION\nf5d4be8e +7 +3 +5\.0Mi +3\.6\.0\n$/ },
  { words: 'snapshot status f.db -o json', out: /"totalKey": 3/ },
  { words: 'snapshot status f.db -o yaml', error: /-o yaml: expected json/ },
  { words: 'snapshot diff f.db g.db', out: /^- \/registry\/a\n\+ \/registry\/b\n~ \/registry\/c\n1 added, 1 removed, 1 changed\n$/ },
  { words: 'snapshot restore f.db', calls: ['restore a f.db {"bumpRevision":0,"skipHashCheck":false}'] },
  { words: 'snapshot restore f.db new', calls: ['restore new f.db {"bumpRevision":0,"skipHashCheck":false}'] },
  { words: 'snapshot restore f.db a --bump-revision 5 --mark-compacted', calls: ['restore a f.db {"bumpRevision":5,"skipHashCheck":false}'] },
  { words: 'snapshot restore f.db a --bump-revision 5', error: /--mark-compacted required if --bump-revision/ },
  { words: 'snapshot restore f.db a --mark-compacted', error: /--mark-compacted required if --bump-revision/ },
  { words: 'snapshot restore f.db a --bump-revision -5 --mark-compacted', error: /--bump-revision -5: expected a whole number/ },
  { words: 'snapshot restore f.db ../x', error: /is no cluster name/ },
]
for (const { words, calls = [], out, error } of snapshotCalls) {
  test(`ETC-20 skiff ${words} ${error ? 'is refused' : 'asks for it'}`, async () => {
    const done = await run(words.split(' '))
    assert.deepEqual(done.calls, calls)
    assert.match(String(done.error ?? ''), error ?? /^$/)
    if (out) assert.match(done.stdout, out)
  })
}

test('X5 up passes --history on, and refuses what is no duration or size', async () => {
  const { calls } = await run(['up', 'b', '--history', '24h', '--history-size', '400Mi', '--no-kubeconfig'])
  assert.deepEqual(calls, ['up b {"history":"24h","historySize":"400Mi"}'])
  for (const [flag, value] of [
    ['--history', '5s'],
    ['--history-size', 'much'],
  ] as const) {
    const { error } = await run(['up', 'b', flag, value])
    assert.match((error as Error).message, new RegExp(`^${flag} ${value}: expected `))
  }
})

const [ca = ''] = rootCertificates
/** A cluster that gives this address to machines. */
const joinable: Partial<ClusterManager> = {
  ...cluster({ '/secrets': {}, '/cluster-info': { data: { kubeconfig: 'clusters:\n- cluster: {server: "https://10.88.0.1:40000"}\n' } } }),
  kubeconfig: async (name) => ({ name, server: running.server, ca, clientCert: 'C', clientKey: 'K' }),
}
const printedJoin = `skiff join 10\\.88\\.0\\.1:40000 --token [a-z0-9]{6}\\.[a-z0-9]{16} --discovery-token-ca-cert-hash sha256:${publicKeyHash(ca)}`

test('KUB-23 token create prints the join command with the address that the cluster gives to machines', async () => {
  const { stdout, error } = await run(['token', 'create', '--print-join-command'], joinable)
  assert.equal(error, undefined)
  assert.match(stdout, new RegExp(`^${printedJoin}\n$`))
})

test('HA-01 a certificate key that comes from a file, and a new one, reach the printed command through standard input alone', async () => {
  const throughInput = (key: string) => new RegExp(`^echo ${key} \\| ${printedJoin} --control-plane --certificate-key-file -\n$`)
  const ofToken = await inFile('k\n', (file) => run(['token', 'create', '--print-join-command', '--certificate-key-file', file], joinable))
  assert.match(ofToken.stdout, throughInput('k'))
  const ofUpload = await run(['certs', 'upload', 'a', '--print-join-command'], joinable)
  const [, key = ''] = /^upload a ([0-9a-f]{64})$/.exec(ofUpload.calls[0] ?? '') ?? []
  assert.match(ofUpload.stdout, throughInput(key))
  const ofFlag = await run(['token', 'create', '--print-join-command', '--certificate-key', 'k'], joinable)
  assert.match(ofFlag.stdout, new RegExp(`^${printedJoin} --control-plane --certificate-key k\n$`))
})

test('ARC-13 nodes add reads the nodes to make from a file, nodes remove counts them, and nodes ls lists all', async () => {
  const text = 'kind: Node\nmetadata: {name: "w-{n}"}\nstatus: {capacity: {cpu: 4}}\n'
  const added = await inFile(text, (file) => run(['nodes', 'add', 'a', '--simulated', '50', '--like', file, '-q']))
  assert.deepEqual(added.calls, ['add 50 to a {"name":"w-{n}","labels":{},"taints":[],"capacity":{"cpu":4}}'])
  assert.deepEqual((await run(['nodes', 'remove', '--simulated', '5', '-q'])).calls, ['remove 5 of a'])
  assert.match((await run(['nodes', 'ls'])).stdout, /^NODE +STATE +RUNTIME +ADDRESS\na-node-1 +Ready +containerd +10\.88\.1\.10\n$/)
})
