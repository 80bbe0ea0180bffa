/**
 * `skiff net service`, `route` and `trace` on a real two-node cluster: connections that are broken in one place each, and the culprit that the trace names. Real
 * containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { testCertificates } from '#testing/testCertificates'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'
import { whoObjects, whoPod } from './support/whoServer.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-net'
const [first, second] = [`${name}-node-1`, `${name}-node-2`]
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

const serve = 'mkdir -p /www; hostname >/www/index.html; exec httpd -f -p 8080 -h /www'

function pod(podName: string, nodeName: string, more: { readonly command?: string; readonly probePort?: number; readonly spec?: object } = {}) {
  const { command = serve, probePort, spec } = more
  const readinessProbe = probePort === undefined ? {} : { readinessProbe: { tcpSocket: { port: probePort }, periodSeconds: 1 } }
  const container = { name: 'app', image: 'web-app:1.0', command: ['sh', '-c', command], ports: [{ name: 'http', containerPort: 8080 }], ...readinessProbe }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, labels: { app: podName } },
    spec: { nodeName, terminationGracePeriodSeconds: 0, containers: [container], ...spec },
  }
}

const service = (serviceName: string, app: string, more: object = {}, targetPort = 8080) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: serviceName },
  spec: { selector: { app }, ports: [{ name: 'http', port: 80, targetPort }], ...more },
})

const deny = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'deny' },
  spec: { podSelector: { matchLabels: { app: 'closed' } }, policyTypes: ['Ingress'] },
}

const sleep = 'sleep 100000'
const objects = [
  pod('client', first, { command: sleep }),
  pod('outside', first, { command: sleep, spec: { dnsPolicy: 'Default' } }),
  pod('web', second, { probePort: 8080 }),
  pod('closed', second),
  pod('lazy', second, { probePort: 9 }),
  service('web', 'web'),
  service('closed', 'closed'),
  service('lazy', 'lazy'),
  service('no-pods', 'nobody'),
  service('no-port', 'web', {}, 8081),
  service('no-class', 'web', { type: 'LoadBalancer', loadBalancerClass: 'example.test/none' }),
  deny,
]

const applyAll = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const expired = await testCertificates('CN=who', ['who'], -0.5)
  await applyAll([...objects, whoPod(name, 1, second, expired), ...whoObjects(expired.cert).slice(0, 1)])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/client', 'pod/outside', 'pod/web', 'pod/closed', 'pod/who-1', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

interface Traced {
  readonly passes?: boolean
  readonly culprit?: { readonly cause: string; readonly text: string }
}

async function trace(...words: readonly string[]): Promise<Traced> {
  const { code, stdout, stderr } = await cluster.skiff(['net', 'trace', ...words, '--cluster', name, '-o', 'json'])
  assert.notEqual(stdout, '', stderr)
  const found = JSON.parse(stdout) as Traced
  assert.equal(code, found.passes === false ? 1 : 0, stdout)
  return found
}

/** Runs a program in the network namespace of a node. */
async function onNode(node: string, ...command: readonly string[]): Promise<string> {
  interface Status {
    readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
  }
  const { pids } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
  const pid = pids.find((one) => one.role === 'node' && one.node === node)?.pid ?? 0
  return execFileSync('nsenter', ['-t', String(pid), '-n', ...command], { encoding: 'utf8' })
}

const podAddress = (of: string) => cluster.must(['get', 'pod', of, '-o', 'jsonpath={.status.podIP}'])

test('SVC-13 skiff net trace shows every hop of a connection that gets through, and ends with 0', options, async () => {
  const { code, stdout } = await cluster.skiff(['net', 'trace', 'client', 'web', '--cluster', name])
  assert.equal(code, 0, stdout)
  for (const hop of ['pod', 'name', 'service', 'proxy', 'endpoints', 'policies', 'route', 'endpoint', 'connection'])
    assert.match(stdout, new RegExp(`^ok +${hop} `, 'm'))
  assert.match(stdout, /\nIt gets through\.\n$/)
  for (const target of ['svc/web', 'http://web.default', 'pod/web', `${await podAddress('web')}:8080`])
    assert.equal((await trace('client', target)).passes, true, target)
})

const broken: readonly (readonly [what: string, words: readonly string[], cause: string, text: RegExp])[] = [
  ['a selector that matches nothing', ['client', 'no-pods'], 'selector', /app=nobody .*pods there have .*app=/],
  ['an endpoint that is not ready', ['client', 'lazy'], 'notReady', /lazy is not ready/],
  ['a wrong targetPort', ['client', 'no-port'], 'targetPort', /nothing listens on port 8081 .* declare: 8080/],
  ['a network policy', ['client', 'closed'], 'policy', /by default\/deny/],
  ['the dnsPolicy', ['outside', 'svc/web'], 'dnsPolicy', /dnsPolicy Default/],
  ['a class of load balancers without a controller', ['client', 'svc/no-class', '--external'], 'class', /example\.test\/none/],
  ['an expired certificate', ['client', 'https://who'], 'certificate', /expired at /],
]
for (const [what, words, cause, text] of broken) {
  test(`SVC-13 skiff net trace names the culprit in the cluster: ${what}`, options, async () => {
    const { passes, culprit } = await trace(...words)
    assert.deepEqual([passes, culprit?.cause], [false, cause])
    assert.match(culprit?.text ?? '', text)
  })
}

test('NET-05 skiff net trace and skiff net route name a route that leads a pod’s packets astray', options, async () => {
  const address = await podAddress('web')
  await onNode(first, 'ip', 'route', 'add', 'blackhole', address)
  try {
    const { culprit } = await trace('client', 'web')
    assert.equal(culprit?.cause, 'route')
    const { stdout } = await cluster.skiff(['net', 'route', first, '--cluster', name])
    assert.match(stdout, new RegExp(`^ +${address.replaceAll('.', '\\.')} +blackhole .*FOREIGN$`, 'm'))
    const [, range = ''] = /^ +(10\.\d+\.\d\.0\/24) +10\.\S+ +eth0 +present$/m.exec(stdout) ?? []
    const ranges = await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].spec.podCIDR}'])
    assert.ok(ranges.split(' ').includes(range), stdout)
  } finally {
    await onNode(first, 'ip', 'route', 'del', 'blackhole', address)
  }
})

test('LRN-06 skiff net service shows endpoints, names and the rules of each node with the connections that took them', options, async () => {
  await cluster.must(['exec', 'client', '--', 'wget', '-q', '-O', '-', 'http://web'])
  const { stdout } = await cluster.skiff(['net', 'service', 'web', '--cluster', name, '-o', 'json'])
  const { endpoints, names, nodes } = JSON.parse(stdout)
  const shown = endpoints.found.map(({ port, ready, node, targetPod }: Record<string, unknown>) => ({ port, ready, node, targetPod }))
  assert.deepEqual(shown, [{ port: 8080, ready: true, node: second, targetPod: 'web' }])
  assert.deepEqual(
    names.found.map(({ type, code, records }: { type: string; code: string; records?: string[] }) => `${type} ${code} ${records?.length ?? 0}`),
    ['A NOERROR 1', 'AAAA NODATA 0', 'SRV NOERROR 1'],
  )
  type Shown = {
    readonly node: string
    readonly found: { readonly mode: string; readonly rules: readonly { readonly lines?: string[]; readonly connections?: number }[] }
  }
  for (const { found } of nodes.found as Shown[]) {
    assert.equal(found.mode, 'nftables')
    assert.ok(found.rules.length >= 3 && found.rules.every(({ lines }) => lines !== undefined), stdout)
  }
  const own = (nodes.found as Shown[]).find(({ node }) => node === first)
  assert.ok(
    own?.found.rules.some(({ connections = 0 }) => connections > 0),
    stdout,
  )
})

test('SVC-13 a tenant sees with skiff net what the tenant may read, and which rights are missing', options, async () => {
  await cluster.must(['create', 'serviceaccount', 'tenant'])
  await cluster.must(['create', 'rolebinding', 'tenant', '--clusterrole=view', '--serviceaccount=default:tenant'])
  const config = JSON.parse(await cluster.must(['config', 'view', '--raw', '--minify', '-o', 'json']))
  config.users[0].user = { token: await cluster.must(['create', 'token', 'tenant']) }
  const file = path.join(cluster.dir, 'tenant.json')
  fs.writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const traced = await cluster.skiff(['net', 'trace', 'client', 'svc/web', '--kubeconfig', file])
  assert.match(traced.stdout, /not shown: you may not get servicerules\.node\.skiff\.dev/)
  assert.match(traced.stdout, /not probed: you may not get networkprobes\.node\.skiff\.dev/)
  assert.match(traced.stdout, /ok +endpoints +1 of 1 ready/)
  const service_ = await cluster.skiff(['net', 'svc', 'web', '--kubeconfig', file])
  assert.match(service_.stdout, /rules: not shown: you may not list nodes\n/)
  assert.match(service_.stdout, /:8080 +yes/)
  assert.match((await cluster.skiff(['net', 'route', '--kubeconfig', file])).stdout, /^routes: not shown: you may not list noderoutes\.node\.skiff\.dev$/m)
})

/** Pods that real nodes cannot run, and what the answer of `skiff why` begins with. */
const waiting: readonly (readonly [name: string, spec: object, answer: RegExp])[] = [
  ['no-image', containerWith({ image: 'localhost:1/none:1' }), /^container app: image localhost:1\/none:1 cannot be pulled: .*connection refused/],
  ['no-program', containerWith({ command: ['/serve'] }), /^container app cannot be started: .*\/serve/],
  [
    'no-directory',
    {
      ...containerWith({ volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
      volumes: [{ name: 'data', hostPath: { path: '/none/here', type: 'Directory' } }],
    },
    /^a volume cannot be mounted: volume data: hostPath \/none\/here doesn't exist$/,
  ],
  [
    'no-config',
    { ...containerWith({ volumeMounts: [{ name: 'conf', mountPath: '/conf' }] }), volumes: [{ name: 'conf', configMap: { name: 'gone' } }] },
    /^a volume cannot be mounted: volume conf: configmap "gone" not found$/,
  ],
  [
    'no-memory',
    containerWith({ command: ['sh', '-c', 'x=y; while :; do x=$x$x; done'], resources: { limits: { memory: '16Mi' } } }),
    /^container app needs more memory than its limit of 16Mi/,
  ],
]

function containerWith(more: object): { readonly containers: readonly object[] } {
  return { containers: [{ name: 'app', image: 'web-app:1.0', ...more }] }
}

test('X8 skiff why names the cause of pods that a real node cannot run', options, async () => {
  await applyAll(waiting.map(([podName, spec]) => pod(podName, first, { spec })))
  for (const [podName, , answer] of waiting) {
    const { causes } = await eventually(
      `skiff why to explain ${podName}`,
      30_000,
      async () => JSON.parse((await cluster.skiff(['why', `pod/${podName}`, '--cluster', name, '-o', 'json'])).stdout) as Explained,
      (found) => found.causes.some(({ text }) => answer.test(text)),
    )
    assert.match(causes[0]?.text ?? '', answer)
    assert.notEqual(causes[0]?.next, undefined)
  }
  await cluster.must(['delete', 'pod', ...waiting.map(([podName]) => podName), '--wait=false'])
})

interface Explained {
  readonly causes: readonly { readonly text: string; readonly next?: string }[]
}

test('SVC-06 skiff net trace names the proxy, whose rules are gone', options, async () => {
  await onNode(first, 'nft', 'delete', 'table', 'ip', 'kube-proxy')
  const { culprit } = await trace('client', 'web')
  assert.equal(culprit?.cause, 'proxy')
  assert.match(culprit.text, /lacks \d+ of \d+ rules/)
  // The next change makes the proxy write its table again.
  await applyAll([service('another', 'web')])
  await eventually(
    'the rules to be back',
    20_000,
    () => trace('client', 'web'),
    ({ passes }) => passes === true,
  )
})

test('SVC-13 deleting the cluster leaves the host as it was, after probes in its pods', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
