/**
 * What kubectl prints against a whole cluster on simulated nodes: lists, explain, apply in both ways, diff, edit, patches, labels, wait, access
 * questions, and describe of every kind that has rules. What the kubectl at hand is too old for is skipped by name.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, kubectlVersion, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { webManifests } from './support/webImage.ts'

const skip = obstacleToCluster(false)
const minor = kubectlVersion()?.minor ?? 0
const options = { skip }
/** For commands and flags that came with a release of kubectl. */
const since = (release: number) => ({ skip: skip || (minor < release ? `kubectl 1.${minor} is older than 1.${release}` : false) })
let cluster: LocalCluster

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start('e2e-kubectl', ['--runtime', 'simulated', '--nodes', '2'])
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const configMap = (data: Record<string, string>) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data })
const dataOf = () => cluster.must(['get', 'configmap', 'settings', '-o', 'jsonpath={.data}'])

test('API-17 get all -A shows every workload with its columns', options, async () => {
  const all = await cluster.must(['get', 'all', '-A'])
  assert.match(all, /NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE\ndefault +pod\/web-app-\w+-\w+ +1\/1 +Running +0 /)
  assert.match(all, /NAMESPACE +NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\ndefault +service\/kubernetes +ClusterIP +10\.96\.0\.1 +<none> +443\/TCP /)
  assert.match(all, /NAMESPACE +NAME +READY +UP-TO-DATE +AVAILABLE +AGE\ndefault +deployment\.apps\/web-app +3\/3 +3 +3 /)
  assert.match(all, /NAMESPACE +NAME +DESIRED +CURRENT +READY +AGE\ndefault +replicaset\.apps\/web-app-\w+ +3 +3 +3 /)
})

test('API-14 api-resources and api-versions', options, async () => {
  const resources = await cluster.must(['api-resources'])
  for (const line of [/^pods +po +v1 +true +Pod$/m, /^deployments +deploy +apps\/v1 +true +Deployment$/m, /^nodes +no +v1 +false +Node$/m])
    assert.match(resources, line)
  // 68 resources, less those that only take a POST and one of the two events.
  assert.ok(resources.split('\n').length > 55, `${resources.split('\n').length} lines`)
  const versions = (await cluster.must(['api-versions'])).split('\n')
  // The 22 of upstream's default API, and two that the cluster computes.
  assert.equal(versions.length, 24)
  for (const one of ['v1', 'apps/v1', 'metrics.k8s.io/v1beta1', 'node.skiff.dev/v1alpha1']) assert.ok(versions.includes(one), one)
})

test('API-15 explain, with types and texts', options, async () => {
  const text = await cluster.must(['explain', 'pod.spec.containers'])
  assert.match(text, /FIELDS?:/)
  assert.match(text, /imagePullPolicy\s+<string>/)
  assert.match(text, /Arguments to the entrypoint/)
  assert.match(await cluster.must(['explain', 'deployment.spec.strategy', '--recursive']), /maxSurge/)
})

test('API-11 client-side apply creates, changes and prunes fields', options, async () => {
  assert.equal(await cluster.mustWith(configMap({ a: '1', b: '2' }), ['apply', '-f', '-']), 'configmap/settings created')
  assert.equal(await cluster.mustWith(configMap({ a: '1', b: '2' }), ['apply', '-f', '-']), 'configmap/settings unchanged')
  assert.equal(await cluster.mustWith(configMap({ a: '3' }), ['apply', '-f', '-']), 'configmap/settings configured')
  assert.equal(await dataOf(), '{"a":"3"}')
})

test('API-11 server-side apply, a conflict that names the other manager, and taking over by force', options, async () => {
  const apply = (data: Record<string, string>, manager: string, ...flags: string[]) =>
    cluster.mustWith(configMap(data), ['apply', '--server-side', '--field-manager', manager, ...flags, '-f', '-'])
  await cluster.must(['delete', 'configmap', 'settings'])
  assert.equal(await apply({ a: '1' }, 'one'), 'configmap/settings serverside-applied')
  await assert.rejects(apply({ a: '2' }, 'two'), /conflict with "one"[\s\S]*\.data\.a/)
  await apply({ a: '2' }, 'two', '--force-conflicts')
  assert.equal(await dataOf(), '{"a":"2"}')
})

test('API-12 diff shows what apply would change, and changes nothing', options, async () => {
  const file = path.join(cluster.dir, 'settings.json')
  await fs.writeFile(file, configMap({ a: 'new' }))
  const before = await dataOf()
  const { a } = JSON.parse(before)
  const diff = await cluster.kubectl(['diff', '-f', file])
  assert.equal(diff.code, 1, diff.stderr)
  assert.match(diff.stdout, new RegExp(`^- {2}a: "${a}"$`, 'm'))
  assert.match(diff.stdout, /^\+ {2}a: new$/m)
  assert.equal(await dataOf(), before)
})

test('API-03 edit writes back what the editor leaves', options, async () => {
  const editor = path.join(cluster.dir, 'editor.sh')
  await fs.writeFile(editor, '#!/bin/sh\nsed -i "s/a: .*/a: edited/" "$1"\n', { mode: 0o755 })
  cluster.env.KUBE_EDITOR = editor
  assert.match(await cluster.must(['edit', 'configmap', 'settings']), /configmap\/settings edited/)
  assert.equal(await dataOf(), '{"a":"edited"}')
})

const patches: { type: string; body: unknown; want: string }[] = [
  { type: 'merge', body: { data: { a: null, b: 'merge' } }, want: '{"b":"merge"}' },
  { type: 'json', body: [{ op: 'add', path: '/data/c', value: 'json' }], want: '{"b":"merge","c":"json"}' },
  { type: 'strategic', body: { data: { b: 'strategic' } }, want: '{"b":"strategic","c":"json"}' },
]
for (const { type, body, want } of patches) {
  test(`API-11 patch --type ${type}`, options, async () => {
    await cluster.must(['patch', 'configmap', 'settings', '--type', type, '-p', JSON.stringify(body)])
    assert.equal(await dataOf(), want)
  })
}

test('API-10 label, annotate and selectors', options, async () => {
  await cluster.must(['label', 'configmap', 'settings', 'tier=front', 'stage=test'])
  await cluster.must(['annotate', 'configmap', 'settings', 'note=hello'])
  assert.match(await cluster.must(['get', 'configmap', '-l', 'tier in (front,back),!missing', '--show-labels']), /settings .*stage=test,tier=front/)
  assert.match((await cluster.kubectl(['get', 'configmap', '-l', 'tier=back'])).stderr, /No resources found in default namespace/)
  assert.equal(await cluster.must(['get', 'pods', '--field-selector', 'status.phase=Pending', '-o', 'name']), '')
})

test('API-08 kubectl wait returns when the condition is met', options, async () => {
  assert.match(await cluster.must(['wait', '--for=condition=Available', 'deployment/web-app', '--timeout=30s']), /deployment.apps\/web-app condition met/)
  const watching = cluster.follow(['get', 'configmap', 'settings', '-w', '--no-headers'])
  await watching.until(/settings/)
  await cluster.must(['patch', 'configmap', 'settings', '--type', 'merge', '-p', '{"data":{"watched":"yes"}}'])
  await watching.until(/settings +3 /)
  watching.end()
})

test('AUZ-07 auth can-i, with --list and --as', options, async () => {
  assert.equal(await cluster.must(['auth', 'can-i', 'delete', 'nodes']), 'yes')
  assert.match(await cluster.must(['auth', 'can-i', '--list']), /\*\.\* +\[\] +\[\] +\[\*\]/)
  const other = await cluster.kubectl(['auth', 'can-i', 'list', 'pods', '--as=nobody'])
  assert.deepEqual([other.code, other.stdout.trim()], [1, 'no'])
  await cluster.must(['create', 'rolebinding', 'readers', '--clusterrole=view', '--user=nobody'])
  await eventually(
    'the binding to count',
    5000,
    async () => (await cluster.kubectl(['auth', 'can-i', 'list', 'pods', '--as=nobody'])).stdout.trim(),
    (answer) => answer === 'yes',
  )
})

test('AUN-03 a token made for a service account works, and only for that one', since(24), async () => {
  const token = await cluster.must(['create', 'token', 'default', '--duration=10m'])
  const whoami = await cluster.kubectl([
    '--kubeconfig',
    '/dev/null',
    '--server',
    await server(),
    '--insecure-skip-tls-verify',
    '--token',
    token,
    'auth',
    'whoami',
  ])
  assert.match(whoami.stdout, /system:serviceaccount:default:default/)
  const forged = `${token.slice(0, -6)}AAAAAA`
  assert.match(
    (await cluster.kubectl(['--kubeconfig', '/dev/null', '--server', await server(), '--insecure-skip-tls-verify', '--token', forged, 'get', 'pods'])).stderr,
    /Unauthorized|must be logged in/,
  )
})

const server = () => cluster.must(['config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}'])

const described: { what: string[]; want: RegExp[]; from?: number }[] = [
  { what: ['namespace', 'kube-system'], want: [/Status: +Active/] },
  { what: ['node', 'e2e-kubectl-sim-1'], want: [/Conditions:[\s\S]*Ready +True/, /Allocated resources:/] },
  { what: ['pods', '-l', 'app=web'], want: [/Status: +Running/, /Controlled By: +ReplicaSet\/web-app-/, /Events:[\s\S]*Scheduled[\s\S]*Started/] },
  { what: ['service', 'web-service'], want: [/Type: +LoadBalancer/, /IP: +10\.96\./, /Endpoints: +10\./] },
  { what: ['endpoints', 'kubernetes'], want: [/Name: +kubernetes/] },
  { what: ['endpointslice', '-l', 'kubernetes.io/service-name=web-service'], want: [/AddressType: +IPv4/, /TargetRef: +Pod\/web-app-/], from: 21 },
  { what: ['configmap', 'kube-root-ca.crt'], want: [/ca\.crt:[\s\S]*BEGIN CERTIFICATE/] },
  { what: ['secret', 'password'], want: [/Type: +Opaque[\s\S]*word: +6 bytes/] },
  { what: ['serviceaccount', 'default'], want: [/Name: +default/] },
  { what: ['lease', '-n', 'kube-node-lease', 'e2e-kubectl-sim-1'], want: [/Holder Identity: +e2e-kubectl-sim-1/] },
  {
    what: ['deployment', 'web-app'],
    want: [/Replicas: +3 desired \| 3 updated \| 3 total \| 3 available \| 0 unavailable/, /StrategyType: +RollingUpdate/, /ScalingReplicaSet/],
  },
  { what: ['replicaset', '-l', 'app=web'], want: [/Replicas: +3 current \/ 3 desired/, /Pods Status: +3 Running/] },
  { what: ['clusterrole', 'view'], want: [/PolicyRule:/] },
  { what: ['clusterrolebinding', 'cluster-admin'], want: [/Group +system:masters/] },
  { what: ['role', '-n', 'kube-system', 'extension-apiserver-authentication-reader'], want: [/configmaps/] },
  { what: ['rolebinding', 'readers'], want: [/Kind: +ClusterRole\s+Name: +view/] },
  { what: ['priorityclass', 'system-node-critical'], want: [/Value: +2000001000/] },
  { what: ['event'], want: [/Reason: +ScalingReplicaSet/] },
]
test('API-01 a secret to describe', options, async () => {
  await cluster.must(['create', 'secret', 'generic', 'password', '--from-literal=word=secret'])
})
for (const { what, want, from = 0 } of described) {
  test(`API-01 describe ${what.join(' ')}`, since(from), async () => {
    const text = await cluster.must(['describe', ...what])
    for (const pattern of want) assert.match(text, pattern)
  })
}

const refused: { name: string; input: string; want: RegExp }[] = [
  { name: 'malformed YAML', input: 'a: [', want: /error (parsing|converting)|yaml/i },
  { name: 'no kind', input: '{"apiVersion":"v1","metadata":{"name":"x"}}', want: /kind/i },
  { name: 'an unknown kind', input: '{"apiVersion":"v1","kind":"Nope","metadata":{"name":"x"}}', want: /no matches for kind "Nope" in version "v1"/ },
  {
    name: 'a name out of form',
    input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"No_Good"}}',
    want: /metadata\.name: Invalid value: "No_Good": a lowercase RFC 1123 subdomain/,
  },
  {
    name: 'a label out of form',
    input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a":"not ok"}}}',
    want: /metadata\.labels: Invalid value: "not ok": a valid label must be/,
  },
]
for (const c of refused) {
  test(`API-04 refused: ${c.name}`, options, async () => {
    await assert.rejects(cluster.mustWith(c.input, ['create', '-f', '-']), c.want)
  })
}

test('API-13 an unknown field is refused when validation is strict', since(25), async () => {
  await assert.rejects(
    cluster.mustWith('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"dota":{}}', ['create', '--validate=strict', '-f', '-']),
    /strict decoding error: unknown field "dota"/,
  )
})
