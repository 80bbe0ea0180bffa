import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod, PodSpec, Service } from '#api/gen/types/core.v1'
import { notFound } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { RuntimeImage } from '#grpc/criTypes'
import { BackOff } from '../core/backOff.ts'
import { containerResources, milliCpuToQuota, milliCpuToShares, oomScoreAdj, podCgroupLimits, podCgroupPath, podQosClass } from '../core/cgroupResources.ts'
import { kubeletConfig } from '../core/config.ts'
import { podField, resourceField } from '../core/downwardApi.ts'
import { expand, expandWords } from '../core/expansion.ts'
import { nodeUsers } from '../core/idRanges.ts'
import { ConfigError, type EnvironmentSources, makeEnvironment, relevantServices, serviceVariables } from './environment.ts'
import { environmentFileValue } from './environmentFile.ts'
import { hostsFile, sandboxHostname } from './hostnames.ts'
import { podSandboxConfig } from './runtimeConfig.ts'
import { containerSecurityContext, verifyRunAsNonRoot } from './securityContext.ts'

function pod(spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-0', namespace: 'shop', uid: 'u1', ...metadata },
    spec: { containers: [{ name: 'main' }], ...spec },
    status: {},
  }
}

const variables: Record<string, string> = { A: '1', EMPTY: '' }
const expansions = [
  ['plain', 'plain'],
  ['$(A)', '1'],
  ['x$(A)y$(A)', 'x1y1'],
  ['$(EMPTY)', ''],
  ['$(UNKNOWN)', '$(UNKNOWN)'],
  ['$$(A)', '$(A)'],
  ['$$$(A)', '$1'],
  ['$A $(', '$A $('],
  ['$(A', '$(A'],
  ['costs 5$', 'costs 5$'],
] as const
for (const [input, want] of expansions)
  test(`KUB-18 ${input} expands to ${want}`, () =>
    assert.equal(
      expand(input, (name) => variables[name]),
      want,
    ))

test('KUB-18 a value that doubles with each reference fails at the length that a kernel accepts', async () => {
  const doubling = [{ name: 'A0', value: 'x'.repeat(64) }, ...Array.from({ length: 40 }, (_, i) => ({ name: `A${i + 1}`, value: `$(A${i})$(A${i})` }))]
  await assert.rejects(environmentOf({ env: doubling }), { message: 'references in "$(A11)$(A11)" expand to more than 131072 characters' })
  const eleven = await environmentOf({ env: doubling.slice(0, 12) })
  assert.equal(eleven.A11?.length, 131_072)
})

test('KUB-18 many references to one long value fail at the length that a kernel accepts in all', async () => {
  const long = { name: 'L', value: 'x'.repeat(100_000) }
  const env = [long, ...Array.from({ length: 1000 }, (_, i) => ({ name: `E${i}`, value: '$(L)' }))]
  await assert.rejects(environmentOf({ env }), { message: 'the environment has more than 6291456 characters' })
  await assert.rejects(environmentOf({ env: [long, ...Array.from({ length: 1000 }, () => ({ name: 'SAME', value: '$(L)' }))] }), /6291456/)
  const args = Array.from({ length: 1000 }, () => '$(L)')
  assert.throws(() => expandWords(args, () => long.value), { message: 'command, arguments and environment expand to more than 6291456 characters' })
})

test('KUB-18 a ConfigMap that envFrom names thousands of times fails at the length that a kernel accepts', async () => {
  const envFrom = Array.from({ length: 500_000 }, (_, i) => ({ prefix: `P${i}_`, configMapRef: { name: 'c' } }))
  await assert.rejects(environmentOf({ envFrom }), { message: 'the environment has more than 6291456 characters' })
})

test('KUB-18 what is longer than any reference makes it is passed on as it is written', () => {
  const word = 'x'.repeat(200_000)
  assert.deepEqual(
    expandWords([word], () => undefined),
    [word],
  )
})

test('KUB-18 a megabyte of unfinished references is read once', () => {
  const input = '$('.repeat(500_000)
  const startMs = performance.now()
  assert.equal(
    expand(input, () => 'x'),
    input,
  )
  assert.equal(
    expand(`${input})`, () => undefined),
    `${input})`,
  )
  assert.ok(performance.now() - startMs < 2000)
})

test('KUB-18 a key that objects inherit is no key of a ConfigMap or label', async () => {
  await assert.rejects(
    environmentOf({ env: [{ name: 'X', valueFrom: { configMapKeyRef: { name: 'c', key: 'constructor' } } }] }),
    /couldn't find key constructor/,
  )
  assert.equal(podField(pod({}, { labels: {} }), "metadata.labels['constructor']", facts), '')
})

const service = (name: string, namespace: string, ports: { name?: string; port: number; protocol?: string }[], clusterIP = '10.0.0.5'): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { clusterIP, ports },
  status: {},
})

test('KUB-18 service variables have upstream’s names', () => {
  assert.deepEqual(
    Object.fromEntries(
      serviceVariables([
        service('my-db', 'shop', [
          { name: 'main-port', port: 5432 },
          { port: 53, protocol: 'UDP' },
        ]),
        service('headless', 'shop', [{ port: 1 }], 'None'),
      ]),
    ),
    {
      MY_DB_SERVICE_HOST: '10.0.0.5',
      MY_DB_SERVICE_PORT: '5432',
      MY_DB_SERVICE_PORT_MAIN_PORT: '5432',
      MY_DB_PORT: 'tcp://10.0.0.5:5432',
      MY_DB_PORT_5432_TCP: 'tcp://10.0.0.5:5432',
      MY_DB_PORT_5432_TCP_PROTO: 'tcp',
      MY_DB_PORT_5432_TCP_PORT: '5432',
      MY_DB_PORT_5432_TCP_ADDR: '10.0.0.5',
      MY_DB_PORT_53_UDP: 'udp://10.0.0.5:53',
      MY_DB_PORT_53_UDP_PROTO: 'udp',
      MY_DB_PORT_53_UDP_PORT: '53',
      MY_DB_PORT_53_UDP_ADDR: '10.0.0.5',
    },
  )
})

test('without service links only the master service has variables', () => {
  const services = [service('kubernetes', 'default', [{ port: 443 }]), service('db', 'shop', [{ port: 1 }]), service('other', 'elsewhere', [{ port: 1 }])]
  const names = (links: boolean) => relevantServices(pod({ enableServiceLinks: links }), services).map((item) => item.metadata.name)
  assert.deepEqual([names(true), names(false)], [['kubernetes', 'db'], ['kubernetes']])
})

const sources: EnvironmentSources = {
  configMap: async (_namespace, name) => {
    if (name === 'missing') throw notFound({ group: '', resource: 'configmaps' }, name)
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { color: 'blue', size: 'xl' } }
  },
  secret: async (_namespace, name) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { key: Buffer.from('s3cret').toString('base64') } }),
  services: () => [service('kubernetes', 'default', [{ port: 443 }])],
  ownTurn: () => Promise.resolve(),
  file: async (volumeName) => {
    if (volumeName === 'absent') throw new ConfigError('cannot find the volume "absent" referenced by FileKeyRef')
    return volumeName === 'broken' ? 'A = x' : "A='one'\n"
  },
}
const facts = { podIPs: ['10.1.0.2'], hostIPs: ['192.0.2.1'], allocatable: { cpu: '4', memory: '8Gi' } }

async function environmentOf(container: Partial<Container>): Promise<Record<string, string>> {
  const all = await makeEnvironment(pod(), { name: 'main', ...container }, facts, sources)
  return Object.fromEntries([...all].filter(([name]) => !name.startsWith('KUBERNETES_PORT')))
}

test('KUB-18 env overrides envFrom, refers back, and reads fields, resources, config maps and secrets', async () => {
  const env = await environmentOf({
    resources: { limits: { cpu: '1500m' } },
    envFrom: [{ prefix: 'P_', configMapRef: { name: 'c' } }, { configMapRef: { name: 'missing', optional: true } }],
    env: [
      { name: 'P_size', value: 's' },
      { name: 'BOTH', value: '$(P_color)/$(P_size)/$(LATER)' },
      { name: 'LATER', value: 'x' },
      { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } },
      { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'c', key: 'nope', optional: true } } },
      { name: 'HOST', value: '$(KUBERNETES_SERVICE_HOST)' },
    ],
  })
  assert.deepEqual(env, {
    P_color: 'blue',
    P_size: 's',
    BOTH: 'blue/s/$(LATER)',
    LATER: 'x',
    IP: '10.1.0.2',
    CPU: '2',
    KEY: 's3cret',
    HOST: '10.0.0.5',
    KUBERNETES_SERVICE_HOST: '10.0.0.5',
    KUBERNETES_SERVICE_PORT: '443',
  })
})

test('KUB-18 a missing key is a configuration error with upstream’s text', async () => {
  const env = [{ name: 'X', valueFrom: { configMapKeyRef: { name: 'c', key: 'nope' } } }]
  await assert.rejects(environmentOf({ env }), { message: "couldn't find key nope in ConfigMap shop/c" })
  await assert.rejects(environmentOf({ envFrom: [{ configMapRef: { name: 'missing' } }] }), /"missing" not found/)
})

test('downward API fields and resources', () => {
  const labelled = pod(
    { containers: [{ name: 'main', resources: { limits: { memory: '100Mi' } } }] },
    { labels: { b: '2', a: 'x "y"' }, annotations: { 'k/z': 'v' } },
  )
  const [main] = labelled.spec.containers
  assert.ok(main)
  assert.equal(podField(labelled, 'metadata.labels', facts), 'a="x \\"y\\""\nb="2"')
  assert.equal(podField(labelled, "metadata.annotations['k/z']", facts), 'v')
  assert.throws(() => podField(labelled, 'spec.nope', facts), /unsupported fieldPath/)
  assert.equal(resourceField(labelled, main, { resource: 'limits.memory', divisor: '1Mi' }, facts.allocatable), '100')
  assert.equal(resourceField(labelled, main, { resource: 'limits.cpu' }, facts.allocatable), '4')
  const whole = { ...labelled, spec: { ...labelled.spec, resources: { limits: { cpu: '2' } } } }
  assert.equal(resourceField(whole, main, { resource: 'limits.cpu' }, facts.allocatable), '2')
  assert.equal(resourceField(labelled, main, { resource: 'requests.cpu' }, facts.allocatable), '0')
})

test('KUB-20 host names: cut to 63, with a domain, overridden, none on the host network', () => {
  const long = 'a'.repeat(70)
  assert.equal(sandboxHostname(pod({}, { name: long }), 'cluster.local'), 'a'.repeat(63))
  assert.equal(sandboxHostname(pod({ hostname: 'h', subdomain: 'sub' }), 'cluster.local'), 'h')
  assert.equal(sandboxHostname(pod({ hostname: 'h', subdomain: 'sub', setHostnameAsFQDN: true }), 'cluster.local'), 'h.sub.shop.svc.cluster.local')
  const endless = pod({ hostname: 'h'.repeat(40), subdomain: 'sub', setHostnameAsFQDN: true })
  assert.throws(
    () => sandboxHostname(endless, 'cluster.local'),
    /FQDN h+\.sub\.shop\.svc\.cluster\.local is too long \(64 characters is the max, 67 characters requested\)/,
  )
  assert.equal(sandboxHostname(pod({ hostnameOverride: 'other' }), 'cluster.local'), 'other')
  assert.equal(sandboxHostname(pod({ hostnameOverride: `${'o'.repeat(62)}.example` }), 'cluster.local'), 'o'.repeat(62))
  assert.equal(sandboxHostname(pod({ hostNetwork: true }), 'cluster.local'), '')
})

test('KUB-20 the hosts file has the pod, its domain and its aliases', () => {
  const text = hostsFile(pod({ subdomain: 'sub', hostAliases: [{ ip: '1.2.3.4', hostnames: ['x', 'y'] }] }), ['10.1.0.2'], 'cluster.local', '')
  assert.ok(text.startsWith('# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n'))
  assert.ok(text.includes('10.1.0.2\tweb-0.sub.shop.svc.cluster.local\tweb-0\n'))
  assert.ok(text.endsWith('# Entries added by HostAliases.\n1.2.3.4\tx\ty\n'))
})

const resources = (requests?: Record<string, string>, limits?: Record<string, string>) => ({ name: 'c', resources: { requests, limits } })
const qosCases = [
  { name: 'nothing asked', containers: [{ name: 'c' }], want: 'BestEffort' },
  { name: 'a request', containers: [resources({ cpu: '1' })], want: 'Burstable' },
  { name: 'limits alone', containers: [resources(undefined, { cpu: '1', memory: '1Gi' })], want: 'Guaranteed' },
  { name: 'requests equal limits', containers: [resources({ cpu: '1000m', memory: '1Gi' }, { cpu: '1', memory: '1024Mi' })], want: 'Guaranteed' },
  { name: 'one container without', containers: [resources({ cpu: '1', memory: '1Gi' }, { cpu: '1', memory: '1Gi' }), { name: 'd' }], want: 'Burstable' },
]
for (const c of qosCases) test(`KUB-14 QoS: ${c.name}`, () => assert.equal(podQosClass(pod({ containers: c.containers })), c.want))

test('KUB-14 the pod’s cgroup adds its containers up, init steps apart', () => {
  const options = { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: 100 }
  const two = pod({
    containers: [resources({ cpu: '100m' }, { cpu: '200m', memory: '10Mi' }), resources({ cpu: '300m' }, { cpu: '1', memory: '20Mi' })],
    initContainers: [resources({ cpu: '2' }, { cpu: '2', memory: '5Mi' })],
  })
  assert.deepEqual(podCgroupLimits(two, options), {
    cpuShares: 2048,
    cpuQuotaUs: 200_000,
    cpuPeriodUs: 100_000,
    memoryLimitBytes: 30 * 2 ** 20,
    pidsLimit: 100,
  })
  const open = pod({ containers: [resources({ cpu: '100m' }, { memory: '10Mi' }), { name: 'free' }] })
  assert.deepEqual(podCgroupLimits(open, { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1 }), { cpuShares: 102 })
  assert.equal(podCgroupPath('/node1', open), '/node1/kubepods/burstable/podu1')
  assert.equal(podCgroupPath('/', pod()), '/kubepods/besteffort/podu1')
})

test('KUB-14 container limits: shares, quota, memory, OOM score', () => {
  const [burst] = pod({ containers: [resources({ memory: '1Gi', cpu: '250m' }, { cpu: '500m', memory: '2Gi' })] }).spec.containers
  assert.ok(burst)
  const owner = pod({ containers: [burst] })
  const options = { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, memoryCapacityBytes: 4 * 2 ** 30 }
  assert.deepEqual(containerResources(owner, burst, options), {
    cpuShares: 256,
    cpuPeriod: 100_000,
    cpuQuota: 50_000,
    memoryLimitInBytes: 2 * 2 ** 30,
    oomScoreAdj: 750,
  })
  const shorter = containerResources(owner, burst, { ...options, cpuCFSQuotaPeriodMs: 20 })
  assert.deepEqual([shorter.cpuPeriod, shorter.cpuQuota], [20_000, 10_000])
  assert.equal(oomScoreAdj(pod(), { name: 'main' }, 2 ** 30), 1000)
  assert.deepEqual(
    [milliCpuToShares(0), milliCpuToShares(1), milliCpuToShares(1000), milliCpuToQuota(1, 100_000), milliCpuToQuota(0, 100_000)],
    [2, 2, 1024, 1000, 0],
  )
})

test('KUB-14 a container without limits inherits its pod’s limits', () => {
  const [bounded, free] = pod({ containers: [resources({}, { memory: '1Gi' }), { name: 'free' }] }).spec.containers
  assert.ok(bounded && free)
  const limits = { cpu: '2', memory: '4Gi', 'hugepages-2Mi': '8Mi' }
  const owner = pod({ containers: [bounded, free], resources: { requests: { memory: '2Gi' }, limits } })
  const options = { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, memoryCapacityBytes: 8 * 2 ** 30, hugepageSizes: [2 ** 21] }
  const of = (container: typeof free) => {
    const { cpuQuota, memoryLimitInBytes, hugepageLimits } = containerResources(owner, container, options)
    return { cpuQuota, memoryLimitInBytes, hugepageLimits }
  }
  const hugepageLimits = [{ pageSize: '2MB', limit: 8 * 2 ** 20 }]
  assert.deepEqual(of(free), { cpuQuota: 200_000, memoryLimitInBytes: 4 * 2 ** 30, hugepageLimits })
  assert.deepEqual(of(bounded), { cpuQuota: 200_000, memoryLimitInBytes: 2 ** 30, hugepageLimits })
})

const scores: { name: string; pod: Pod; want: number }[] = [
  { name: 'shares are cut off, not rounded', pod: pod({ containers: [resources({ memory: '10M' }, {})] }), want: 998 },
  {
    name: 'what a pod asks for as a whole is its containers’ in equal parts',
    pod: pod({ containers: [resources({ memory: '1G' }, {}), { name: 'free' }], resources: { requests: { memory: '3G' } } }),
    want: 500,
  },
  {
    name: 'a sidecar goes no sooner than those that it serves',
    pod: pod({ initContainers: [{ name: 'side', restartPolicy: 'Always' }], containers: [resources({ memory: '1G' }, {})] }),
    want: 750,
  },
]
for (const c of scores) {
  test(`KUB-14 OOM score: ${c.name}`, () => {
    const [container] = [...(c.pod.spec.initContainers ?? []), ...c.pod.spec.containers]
    assert.ok(container)
    assert.equal(oomScoreAdj({ ...c.pod, status: { qosClass: 'Burstable' } }, container, 4_000_000_000), c.want)
  })
}

test('KUB-19 container settings win over the pod’s; privileged lifts the masks', () => {
  const owner = pod({ securityContext: { runAsUser: 1000, fsGroup: 7, supplementalGroups: [8], seccompProfile: { type: 'RuntimeDefault' } } })
  const container = {
    name: 'c',
    securityContext: { runAsUser: 2000, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } },
  }
  const { maskedPaths, readonlyPaths, ...context } = containerSecurityContext(owner, container, { rootDirectory: '/k', users: nodeUsers })
  assert.deepEqual(context, {
    namespaceOptions: { network: 'POD', ipc: 'POD', usernsOptions: nodeUsers, pid: 'CONTAINER' },
    privileged: false,
    readonlyRootfs: true,
    noNewPrivs: true,
    supplementalGroups: [8, 7],
    seccomp: { profileType: 'RuntimeDefault' },
    runAsUser: { value: 2000 },
    capabilities: { addCapabilities: ['NET_ADMIN'], dropCapabilities: ['ALL'] },
  })
  assert.ok(maskedPaths?.includes('/proc/keys') && readonlyPaths?.includes('/proc/sys'))
  assert.deepEqual(
    containerSecurityContext(owner, { name: 'c', securityContext: { privileged: true } }, { rootDirectory: '/k', users: nodeUsers }).maskedPaths,
    [],
  )
})

const image = (uid: number | undefined, username = ''): RuntimeImage => ({
  id: '',
  repoTags: [],
  repoDigests: [],
  size: 0,
  uid: uid === undefined ? null : { value: uid },
  username,
  pinned: false,
})
const where = '(pod: "web-0_shop(u1)", container: main)'
const nonRoot = [
  { name: 'a user who is not root', image: image(1000), want: undefined },
  { name: 'root by the image', image: image(0), want: `container has runAsNonRoot and image will run as root ${where}` },
  { name: 'no user', image: image(undefined), want: `container has runAsNonRoot and image will run as root ${where}` },
  {
    name: 'a name',
    image: image(undefined, 'app'),
    want: `container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root ${where}`,
  },
  { name: 'root by the pod', image: image(1000), user: 0, want: `container's runAsUser breaks non-root policy ${where}` },
]
for (const c of nonRoot) {
  test(`KUB-19 runAsNonRoot: ${c.name}`, () => {
    const check = () => verifyRunAsNonRoot(pod({ securityContext: { runAsNonRoot: true, runAsUser: c.user } }), { name: 'main' }, c.image)
    if (c.want === undefined) check()
    else assert.throws(check, { message: c.want })
  })
}

test('a sandbox carries ports, labels, cgroup and log directory', () => {
  const config = kubeletConfig({ nodeName: 'n', cgroupRoot: '/r', clusterDNS: ['10.96.0.10'] })
  const owner = pod({ containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81 }] }] }, { labels: { app: 'web' } })
  const sandbox = podSandboxConfig(owner, 2, nodeUsers, config)
  assert.deepEqual(sandbox.portMappings, [{ protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '' }])
  assert.equal(sandbox.logDirectory, '/var/log/pods/shop_web-0_u1')
  assert.equal(sandbox.linux.cgroupParent, '/r/kubepods/besteffort/podu1')
  assert.deepEqual(sandbox.labels, { app: 'web', 'io.kubernetes.pod.name': 'web-0', 'io.kubernetes.pod.namespace': 'shop', 'io.kubernetes.pod.uid': 'u1' })
  assert.deepEqual(podSandboxConfig(pod({ hostNetwork: true }), 0, nodeUsers, config).linux.securityContext.namespaceOptions.network, 'NODE')
})

test('KUB-05 back-off doubles to its maximum and forgets after a quiet time', async () => {
  const clock = new VirtualClock()
  const backOff = new BackOff(clock, 10_000, 40_000)
  const fail = () => {
    backOff.next('k', clock.now())
    return backOff.remainingMs('k', clock.now())
  }
  assert.equal(backOff.remainingMs('k', clock.now()), 0)
  assert.deepEqual([fail(), fail(), fail(), fail()], [10_000, 20_000, 40_000, 40_000])
  await clock.advance(80_001)
  assert.equal(fail(), 10_000)
})

const fileVariable = (volumeName: string, key: string, optional = false) => ({
  env: [{ name: 'V', valueFrom: { fileKeyRef: { volumeName, path: 'f', key, optional } } }],
})
test('KUB-18 a variable is read from a file of a volume, or fails with the reason', async () => {
  assert.equal((await environmentOf(fileVariable('v', 'A'))).V, 'one')
  assert.equal('V' in (await environmentOf(fileVariable('v', 'B', true))), false)
  await assert.rejects(environmentOf(fileVariable('v', 'B')), { message: 'environment variable key "B" not found in file "f"' })
  await assert.rejects(environmentOf(fileVariable('broken', 'A')), { message: "couldn't parse env file" })
  await assert.rejects(environmentOf(fileVariable('absent', 'A')), { message: 'cannot find the volume "absent" referenced by FileKeyRef' })
})

const environmentFiles: [text: string, want: string | RegExp][] = [
  ["A='one'", 'one'],
  ["# note\n\n  A='one' # more\nA='two'", 'one'],
  ["B='x'\nA='two\nlines # of'\n", 'two\nlines # of'],
  ["A= 'blank'", ''],
  ["B='x'", ''],
  ['A', /line 1: missing '='/],
  ["='x'", /line 1: empty variable name/],
  ["B='x'\nA ='x'", /line 2: whitespace before '=' is not allowed/],
  ['A=plain', /line 1: value must be enclosed in single quotes/],
  ["A='x'y", /line 1: unexpected content after closing quote/],
  ["B='x'\nA='open\nend", /starting at line 2: unclosed single quote/],
]
for (const [text, want] of environmentFiles) {
  test(`KUB-18 the environment file ${JSON.stringify(text)}`, () => {
    if (typeof want === 'string') assert.equal(environmentFileValue(text, 'A'), want)
    else assert.throws(() => environmentFileValue(text, 'A'), want)
  })
}

test('KUB-19 profiles, labels and policies reach the runtime as they are asked for', () => {
  const of = (spec: Partial<PodSpec>, own: NonNullable<Container['securityContext']> = {}, seccompDefault = false) =>
    containerSecurityContext(pod(spec), { name: 'c', securityContext: own }, { rootDirectory: '/k', users: nodeUsers, seccompDefault })
  assert.equal(of({}).seccomp?.profileType, 'Unconfined')
  assert.equal(of({}, {}, true).seccomp?.profileType, 'RuntimeDefault')
  assert.equal(of({}, { seccompProfile: { type: 'Unconfined' } }, true).seccomp?.profileType, 'Unconfined')
  const confined = of({
    securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'web' }, seLinuxOptions: { level: 's0' }, supplementalGroupsPolicy: 'Strict' },
  })
  assert.deepEqual(confined.apparmor, { profileType: 'Localhost', localhostRef: 'web' })
  assert.deepEqual([confined.selinuxOptions, confined.supplementalGroupsPolicy], [{ user: '', role: '', type: '', level: 's0' }, 1])
  assert.deepEqual(of({}, { appArmorProfile: { type: 'Unconfined' } }).apparmor, { profileType: 'Unconfined' })
})
