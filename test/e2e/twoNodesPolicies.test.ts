/**
 * Network policies on a real two-node cluster: the policy that the reference documents isolate tenants with, between pods of one node and of two, from a pod's
 * first instruction on, while the agent is away, and until the policy is deleted. Real containerd, real kernel, real kubectl.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-policy'
const nodeNames = [`${name}-node-1`, `${name}-node-2`]
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>
/** namespace/name → address */
const addresses = new Map<string, string>()

function pod(namespace: string, podName: string, node: string | undefined, command: string, more: object = {}) {
  const container = { name: 'app', image: 'web-app:1.0', command: ['sh', '-c', command] }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, namespace, labels: { app: podName } },
    spec: { nodeName: node, terminationGracePeriodSeconds: 0, containers: [container], ...more },
  }
}

const serve = 'mkdir -p /www; hostname >/www/index.html; exec httpd -f -p 8080 -h /www'
const servers = ['tenant-a', 'tenant-b'].flatMap((namespace) => nodeNames.map((node, i) => pod(namespace, `server-${i + 1}`, node, serve)))
const services = ['tenant-a', 'tenant-b'].map((namespace) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'server', namespace },
  spec: { selector: { app: 'server-2' }, ports: [{ port: 80, targetPort: 8080 }] },
}))

/** As the reference documents have it. */
const denyCrossNamespace = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'deny-cross-namespace', namespace: 'tenant-a' },
  spec: {
    podSelector: {},
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [{ podSelector: {} }] }],
    egress: [{ to: [{ podSelector: {} }] }, { to: [{ namespaceSelector: { matchLabels: { name: 'kube-system' } } }], ports: [{ protocol: 'UDP', port: 53 }] }],
  },
}

const applyAll = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  for (const namespace of ['tenant-a', 'tenant-b']) await cluster.must(['create', 'namespace', namespace])
  await cluster.must(['label', 'namespace', 'kube-system', 'name=kube-system'])
  await applyAll([...servers, ...services])
  for (const namespace of ['tenant-a', 'tenant-b']) await cluster.must(['wait', '-n', namespace, '--for=condition=Ready', 'pod', '--all', '--timeout=40s'])
  const shown = await cluster.must(['get', 'pods', '-A', '-o', 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.status.podIP}{"\\n"}{end}'])
  for (const line of shown.split('\n')) addresses.set(...(line.split(' ') as [string, string]))
})

after(async () => {
  if (!skip) await cluster?.delete()
})

/** @param from namespace/name @param to the same, or a host with a port */
async function reaches(from: string, to: string): Promise<boolean> {
  const [namespace = '', podName = ''] = from.split('/')
  const host = addresses.has(to) ? `${addresses.get(to)}:8080` : to
  const { code } = await cluster.kubectl(['exec', '-n', namespace, podName, '--', 'timeout', '2', 'wget', '-q', '-O', '-', `http://${host}/`])
  return code === 0
}

const resultOf = async (connections: readonly (readonly [string, string])[]) => Promise.all(connections.map(([from, to]) => reaches(from, to)))

const inside = [
  ['tenant-a/server-1', 'tenant-a/server-2'],
  ['tenant-a/server-2', 'tenant-a/server-1'],
  ['tenant-a/server-1', 'server.tenant-a:80'],
  ['tenant-b/server-1', 'tenant-b/server-2'],
] as const
const across = [
  ['tenant-a/server-1', 'tenant-b/server-1'],
  ['tenant-a/server-1', 'tenant-b/server-2'],
  ['tenant-b/server-1', 'tenant-a/server-1'],
  ['tenant-b/server-1', 'tenant-a/server-2'],
  ['tenant-a/server-1', 'server.tenant-b:80'],
  ['tenant-b/server-2', 'server.tenant-a:80'],
] as const
const all = (list: readonly unknown[], value: boolean) => list.map(() => value)

test('NPO-02 without policies, pods of all namespaces reach each other', options, async () => {
  assert.deepEqual(await resultOf([...inside, ...across]), all([...inside, ...across], true))
})

test(
  'NPO-01 ARC-14 deny-cross-namespace blocks other namespaces on one node, across nodes and through Services; the own namespace and DNS work',
  options,
  async () => {
    const { stderr } = await cluster.kubectl(['get', 'nodes'])
    assert.equal(stderr, '')
    await applyAll([denyCrossNamespace])
    await eventually(
      'the other namespace to be out of reach',
      10_000,
      () => resultOf(across),
      (found) => !found.includes(true),
    )
    assert.deepEqual(await resultOf(inside), all(inside, true))
    const found = await cluster.must(['exec', '-n', 'tenant-a', 'server-1', '--', 'nslookup', 'server.tenant-b.svc.cluster.local'])
    assert.match(found, /Name:\s+server\.tenant-b/)
  },
)

test('NPO-02 skiff net policy allows what the pods reach, and names the policy that decides', options, async () => {
  const explain = async (from: string, to: string) => {
    const { code, stdout, stderr } = await cluster.skiff(['net', 'policy', to, '--from', from, '--port', '8080', '--cluster', name, '-o', 'json'])
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout).verdicts[0]
  }
  const betweenPods = [...inside, ...across].filter(([, to]) => addresses.has(to))
  const verdicts = await Promise.all(betweenPods.map(([from, to]) => explain(from, to)))
  assert.deepEqual(
    verdicts.map(({ allowed }) => allowed),
    await resultOf(betweenPods),
  )
  const byAddress = await explain(addresses.get('tenant-b/server-1') ?? '', 'tenant-a/server-1')
  assert.deepEqual(byAddress, await explain('tenant-b/server-1', 'tenant-a/server-1'))
  assert.deepEqual(byAddress.checks.at(-1).policies, [{ policy: 'tenant-a/deny-cross-namespace', rules: [] }])
})

test('NPO-02 a pod that connects with its first instruction never gets through', options, async () => {
  const target = addresses.get('tenant-b/server-1')
  const dial = `if timeout 3 wget -q -O /dev/null http://${target}:8080/; then echo through; else echo blocked; fi`
  const dialers = Array.from({ length: 30 }, (_, i) => pod('tenant-a', `dialer-${i}`, nodeNames[i % 2], dial, { restartPolicy: 'Never' }))
  const others = Array.from({ length: 4 }, (_, i) => pod('tenant-b', `dialer-${i}`, nodeNames[i % 2], dial, { restartPolicy: 'Never' }))
  await applyAll([...dialers, ...others])
  const done = '-o=jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\\n"}{end}'
  for (const namespace of ['tenant-a', 'tenant-b']) {
    await eventually(
      `the end of the pods in ${namespace}`,
      90_000,
      () => cluster.must(['get', 'pods', '-n', namespace, done]),
      (text) =>
        text
          .split('\n')
          .filter((line) => line.startsWith('dialer'))
          .every((line) => line.endsWith(' Succeeded')),
    )
  }
  type Named = { readonly metadata: { readonly name: string; readonly namespace: string } }
  const throughOf = async (of: readonly Named[]) => {
    const logs = await Promise.all(of.map(({ metadata }) => cluster.must(['logs', '-n', metadata.namespace, metadata.name])))
    assert.ok(logs.every((text) => /through|blocked/.test(text)))
    return logs.filter((text) => text.includes('through')).length
  }
  assert.equal(await throughOf(dialers), 0)
  // The same program in a namespace without policies gets through.
  assert.equal(await throughOf(others), others.length)
})

test('NPO-02 the rules stay in force while the agent of a node is away and when it comes back', options, async () => {
  interface Status {
    readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
  }
  const agent = async () => {
    const { pids } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
    return pids.find(({ role, node }) => role === 'node' && node === nodeNames[0])?.pid ?? 0
  }
  const killed = await agent()
  assert.ok(killed > 1)
  const dial = `while :; do timeout 1 wget -q -O /dev/null http://${addresses.get('tenant-a/server-1')}:8080/ && echo through; done`
  const dialing = cluster.follow(['exec', '-n', 'tenant-b', 'server-2', '--', 'sh', '-c', dial])
  process.kill(killed, 'SIGKILL')
  await eventually('another agent', 20_000, agent, (pid) => pid > 0 && pid !== killed)
  // The new agent has answered: its rules are the newest.
  await applyAll([pod('tenant-a', 'later', nodeNames[0], serve)])
  await cluster.must(['wait', '-n', 'tenant-a', '--for=condition=Ready', 'pod/later', '--timeout=40s'])
  assert.doesNotMatch(dialing.text, /through/)
  dialing.end()
  assert.deepEqual(await resultOf(across.slice(0, 4)), all(across.slice(0, 4), false))
})

test('ARC-14 a tenant sees the own namespace alone, reaches no pod of another, and gets no more than the quota', options, async () => {
  await cluster.must(['create', 'rolebinding', 'tenant', '-n', 'tenant-a', '--clusterrole=edit', '--user=alice'])
  const asAlice = (...words: string[]) => cluster.kubectl(['--as=alice', ...words])
  assert.match((await asAlice('get', 'pods', '-n', 'tenant-a', '-o', 'name')).stdout, /pod\/server-1/)
  for (const words of [
    ['get', 'pods', '-n', 'tenant-b'],
    ['get', 'namespaces'],
    ['get', 'secrets', '-A'],
    ['exec', '-n', 'tenant-b', 'server-1', '--', 'true'],
  ])
    assert.match((await asAlice(...words)).stderr, /Forbidden/, words.join(' '))
  assert.deepEqual(await resultOf(across), all(across, false))
  // A quota counts pods that have not ended.
  const unfinished = '--field-selector=status.phase!=Succeeded,status.phase!=Failed'
  const count = (await cluster.must(['get', 'pods', '-n', 'tenant-a', unfinished, '-o', 'name'])).split('\n').length
  await cluster.must(['create', 'quota', 'tenant', '-n', 'tenant-a', `--hard=pods=${count}`])
  await eventually(
    'the quota to be counted',
    10_000,
    () => cluster.must(['get', 'quota', 'tenant', '-n', 'tenant-a', '-o', 'jsonpath={.status.used.pods}']),
    (text) => text === String(count),
  )
  const { stderr } = await asAlice('run', 'extra', '-n', 'tenant-a', '--image=web-app:1.0')
  assert.match(stderr, /exceeded quota: tenant/)
  assert.match((await asAlice('delete', 'quota', 'tenant', '-n', 'tenant-a')).stderr, /Forbidden/)
  await cluster.must(['delete', 'quota', 'tenant', '-n', 'tenant-a'])
})

test(
  'SDR-03 a tenant cannot leave the isolation: no host network or privileged pod, no policy or label of the namespace is the tenant’s to change',
  options,
  async () => {
    await cluster.must(['label', 'namespace', 'tenant-a', 'pod-security.kubernetes.io/enforce=baseline'])
    const asAlice = async (object: object) => {
      const { stderr } = await cluster.kubectl(['create', '--as=alice', '-f', await written(object)])
      return stderr
    }
    const written = async (object: object) => {
      const file = path.join(cluster.dir, 'object.json')
      fs.writeFileSync(file, JSON.stringify(object))
      return file
    }
    assert.match(await asAlice(pod('tenant-a', 'on-host', undefined, serve, { hostNetwork: true })), /violates PodSecurity "baseline:latest": host namespaces/)
    assert.match(
      await asAlice(pod('tenant-a', 'disk', undefined, serve, { volumes: [{ name: 'v', hostPath: { path: '/' } }] })),
      /violates PodSecurity.*hostPath/,
    )
    for (const words of [
      ['label', 'namespace', 'tenant-a', 'pod-security.kubernetes.io/enforce-'],
      ['get', 'nodes'],
      ['get', 'networkpolicies', '-n', 'tenant-b'],
      ['patch', 'node', nodeNames[0] ?? '', '-p', '{}'],
    ])
      assert.match((await cluster.kubectl([...words, '--as=alice'])).stderr, /Forbidden/, words.join(' '))
    // An edit role may write policies of its own namespace: those add to what is allowed there, and open no other namespace's pods.
    const open = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'open', namespace: 'tenant-a' },
      spec: { podSelector: {}, egress: [{}] },
    }
    assert.equal(await asAlice({ ...open, spec: { ...open.spec, policyTypes: ['Egress'] } }), '')
    await applyAll([{ ...denyCrossNamespace, metadata: { name: 'deny-cross-namespace', namespace: 'tenant-b' } }])
    await eventually(
      'tenant-b to be closed for tenant-a',
      10_000,
      () => resultOf([['tenant-a/server-1', 'tenant-b/server-1'] as const]),
      ([found]) => found === false,
    )
    await cluster.must(['delete', 'networkpolicy', '-n', 'tenant-b', 'deny-cross-namespace'])
    await cluster.must(['delete', 'networkpolicy', '-n', 'tenant-a', 'open'])
  },
)

test('NPO-02 after the policy is deleted, the namespaces reach each other again', options, async () => {
  await cluster.must(['delete', 'networkpolicy', '-n', 'tenant-a', 'deny-cross-namespace'])
  await eventually(
    'all to be in reach',
    10_000,
    () => resultOf(across),
    (found) => !found.includes(false),
  )
})

test('NPO-02 deleting the cluster leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
