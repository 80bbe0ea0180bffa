import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { Event, Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { createClient } from '#client/clientOverTransport'
import { connectCri } from '#grpc/criClient'
import { podResourcesProto } from '#grpc/proto/podResources'
import { connectUnixService } from '#grpc/unixService'
import { createKubeletHost } from '#kubelet/core/host'
import { createKubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { createRealClock } from '#main/realClock'
import { type NodePlugin, startNodePlugin } from '../support/nodePlugin.ts'
import { KubeletApi } from './kubeletApi.ts'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'

const missing = await missingPrerequisite()
const options = { skip: missing ?? false, timeout: 120_000 }
const clock = createRealClock()

let containerd: TestContainerd
let api: KubeletApi
let stop: AbortController
let running: Promise<void>
const directory = () => `${containerd.directory}/kubelet`

async function startKubelet(): Promise<void> {
  const client = connectCri(containerd.socket)
  const host = await createKubeletHost()
  // The machine's own specifications are none of this node's business.
  const path = (nodePath: string) => (/^\/(etc|var\/run)\/cdi/.test(nodePath) ? `${containerd.directory}${nodePath}` : nodePath)
  const machine = await host.machine('/')
  const deps = {
    client: createClient(api),
    clock,
    random: seededRandom(1),
    log: noLog,
    metrics: noMetrics,
    runtime: createContainerdRuntime({ client, clock }),
    host: { ...host, path, machine: async () => machine },
  }
  const kubelet = createKubelet(deps, {
    nodeName: 'node-1',
    nodeIPs: ['10.123.45.1'],
    rootDirectory: directory(),
    podLogsDirectory: `${containerd.directory}/logs`,
    cgroupRoot: containerd.cgroupRoot,
    cpuManagerPolicy: 'static',
    reservedSystemCPUs: '0',
    topologyManagerPolicy: 'single-numa-node',
  })
  stop = new AbortController()
  running = kubelet.run(stop.signal).finally(() => client.close())
  await kubelet.registered
}

async function stopKubelet(): Promise<void> {
  stop.abort()
  await running
}

before(async () => {
  if (missing) return
  containerd = await startContainerd()
  api = new KubeletApi(() => clock.now())
  await startKubelet()
})

after(async () => {
  if (missing) return
  for (const { metadata } of api.list<Pod>('pods')) api.deletePod(metadata.namespace ?? '', metadata.name ?? '', 1)
  await until('all pods are gone', () => api.list('pods').length === 0).catch(() => {})
  await stopKubelet()
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
})

async function until<T>(what: string, condition: () => T | undefined | false | Promise<T | undefined | false>, timeoutMs = 30_000): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    const seen = () => JSON.stringify([api.list<Pod>('pods').map((pod) => pod.status), api.list<Event>('events').map((event) => event.message)])
    if (Date.now() > deadline) throw new Error(`timed out waiting until ${what}: ${seen()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const status = (name: string) => api.get<Pod>('pods', 'default', name)?.status
const runs = (name: string) => until(`${name} runs`, () => status(name)?.containerStatuses?.[0]?.state?.running)
const node = () => api.get<Node>('nodes', '', 'node-1')?.status
const containerId = (name: string) => status(name)?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''

function pod(name: string, amounts: Record<string, string>, script = 'exec sleep 1000', spec: Partial<Pod['spec']> = {}): Pod {
  const guaranteed = amounts.cpu !== undefined
  const resources = guaranteed || Object.keys(amounts).length > 0 ? { requests: amounts, limits: amounts } : {}
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', generation: 1, uid: `0000-${name}` },
    spec: {
      nodeName: 'node-1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: busybox, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script], resources }],
      ...spec,
    },
    status: { phase: 'Pending', qosClass: guaranteed ? 'Guaranteed' : 'BestEffort' },
  }
}

const cpusOf = async (name: string, group: string) =>
  (await readFile(`/sys/fs/cgroup/cpuset${containerd.cgroupRoot}/kubepods/${group}pod0000-${name}/${containerId(name)}/cpuset.cpus`, 'utf8')).trim()
const gone = (name: string) => until(`${name} is gone`, () => status(name) === undefined)

test('KUB-15 the static policy gives a Guaranteed container exclusive CPUs, also after a restart of the kubelet', options, async () => {
  api.put('pods', pod('sharing', {}))
  await runs('sharing')
  const shared = await cpusOf('sharing', 'besteffort/')
  api.put('pods', pod('pinned', { cpu: '1', memory: '32Mi' }))
  await runs('pinned')
  assert.equal(await cpusOf('pinned', ''), '1')
  await until('the other one has moved', async () => !(await cpusOf('sharing', 'besteffort/')).split(/[,-]/).includes('1'))
  const remembered = JSON.parse(await readFile(`${directory()}/cpu_manager_state`, 'utf8'))
  assert.equal(remembered.policyName, 'static')
  assert.deepEqual(remembered.entries, { '0000-pinned': { main: '1' } })
  await stopKubelet()
  await startKubelet()
  assert.deepEqual(JSON.parse(await readFile(`${directory()}/cpu_manager_state`, 'utf8')), remembered)
  api.put('pods', pod('too-many', { cpu: '64', memory: '32Mi' }))
  await until('it is refused', () => status('too-many')?.phase === 'Failed')
  assert.equal(status('too-many')?.reason, 'OutOfcpu')
  api.deletePod('default', 'pinned', 1)
  await gone('pinned')
  await until('its CPUs are back', async () => (await cpusOf('sharing', 'besteffort/')) === shared)
})

const widget = 'skiff.test/widget'
let devices: NodePlugin
const startDevicePlugin = () =>
  startNodePlugin({
    kind: 'device',
    name: widget,
    socket: `${directory()}/device-plugins/widget.sock`,
    registry: `${directory()}/device-plugins/kubelet.sock`,
    devices: [{ id: 'w0', node: 0 }, { id: 'w1', node: 0 }, { id: 'w2' }],
  })

test('KUB-15 a device plugin in its own process: the node has its devices, a container gets them', options, async () => {
  devices = await startDevicePlugin()
  await until('the node has them', () => node()?.allocatable?.[widget] === '3' && node()?.capacity?.[widget] === '3')
  api.put('pods', pod('uses', { [widget]: '2' }, 'echo "$WIDGETS"; for w in /dev/w*; do test -c $w && echo $w; done; exec sleep 1000'))
  await runs('uses')
  assert.deepEqual(
    devices.calls.map(({ method }) => method),
    ['GetPreferredAllocation', 'Allocate', 'PreStartContainer'],
  )
  const read = async () => readFile(`${containerd.directory}/logs/default_uses_0000-uses/main/0.log`, 'utf8')
  await until('it says what it sees', async () => (await read()).split('\n').length > 3)
  assert.deepEqual(
    (await read())
      .trim()
      .split('\n')
      .map((line) => line.split(' ').at(-1)),
    ['w1,w2', '/dev/w1', '/dev/w2'],
  )
  const { Data } = JSON.parse(await readFile(`${directory()}/device-plugins/kubelet_internal_checkpoint`, 'utf8'))
  assert.deepEqual(Data.PodDeviceEntries[0].DeviceIDs, { 0: ['w1'], '-1': ['w2'] })
  assert.deepEqual(Data.RegisteredDevices, { [widget]: ['w0', 'w1', 'w2'] })
})

test('KUB-15 an unhealthy device shows in the pod and the node, and pods that request more than is left are refused', options, async () => {
  devices.tell({ unhealthy: ['w1'] })
  await until('the node has fewer', () => node()?.allocatable?.[widget] === '2')
  assert.equal(node()?.capacity?.[widget], '3')
  await until('the pod says so', () =>
    status('uses')?.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources?.some(({ health }) => health === 'Unhealthy'),
  )
  assert.deepEqual(status('uses')?.containerStatuses?.[0]?.allocatedResourcesStatus, [
    {
      name: widget,
      resources: [
        { resourceID: 'w1', health: 'Unhealthy' },
        { resourceID: 'w2', health: 'Healthy' },
      ],
    },
  ])
  api.put('pods', pod('one-more', { [widget]: '1' }))
  await until('it is refused', () => status('one-more')?.phase === 'Failed')
  assert.deepEqual(
    [status('one-more')?.reason, status('one-more')?.message],
    [`OutOf${widget}`, `Pod was rejected: Node didn't have enough resource: ${widget}, requested: 1, used: 2, capacity: 2`],
  )
})

test('KUB-15 what a plugin refuses is an UnexpectedAdmissionError', options, async () => {
  devices.tell({ refuse: 'Allocate' })
  await until('they are well again', () => node()?.allocatable?.[widget] === '3')
  api.put('pods', pod('refused', { [widget]: '1' }))
  await until('it is refused', () => status('refused')?.phase === 'Failed')
  assert.deepEqual(
    [status('refused')?.reason, status('refused')?.message],
    ['UnexpectedAdmissionError', 'Pod was rejected: Allocate failed due to rpc error: code = Internal desc = not today, which is unexpected'],
  )
})

test('KUB-17 the pod resources API lists the CPUs and devices of each container', options, async () => {
  const service = connectUnixService(podResourcesProto, 'v1.PodResourcesLister', `unix:${directory()}/pod-resources/kubelet.sock`)
  try {
    const { podResources } = await service.call<{ podResources: { name: string; containers: object[] }[] }>('List', {}, 5_000)
    assert.deepEqual(podResources.find(({ name }) => name === 'uses')?.containers, [
      {
        name: 'main',
        devices: [
          { resourceName: widget, deviceIds: ['w1'], topology: { nodes: [{ ID: 0 }] } },
          { resourceName: widget, deviceIds: ['w2'], topology: null },
        ],
        cpuIds: [],
        memory: [],
        dynamicResources: [],
      },
    ])
    const allocatable = await service.call<{ devices: object[]; cpuIds: number[] }>('GetAllocatableResources', {}, 5_000)
    assert.equal(allocatable.devices.length, 3)
    assert.ok(!allocatable.cpuIds.includes(0) && allocatable.cpuIds.includes(1))
    await assert.rejects(service.call('Get', { podName: 'none', podNamespace: 'default' }, 5_000), /pod none in namespace default not found/)
  } finally {
    service.close()
  }
})

test('KUB-15 devices of a plugin that is gone are not allocatable; after a restart of both everything is known again', options, async () => {
  await devices.close()
  await until('none is allocatable', () => node()?.allocatable?.[widget] === '0')
  assert.equal(node()?.capacity?.[widget], '3')
  await stopKubelet()
  await startKubelet()
  await until('the socket is back', () =>
    startDevicePlugin().then(
      (plugin) => (devices = plugin),
      () => undefined,
    ),
  )
  await until('the node has them again', () => node()?.allocatable?.[widget] === '3')
  api.put('pods', pod('last', { [widget]: '1' }))
  await runs('last')
  assert.deepEqual(devices.calls.find(({ method }) => method === 'Allocate')?.request, { containerRequests: [{ devicesIds: ['w0'] }] })
  await devices.close()
})

const driver = 'dra.skiff.test'

function claim(name: string, podName: string) {
  const results = [{ request: 'one', driver, pool: 'pool', device: 'd0' }]
  const reservedFor = [{ resource: 'pods', name: podName, uid: `0000-${podName}` }]
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: {},
    status: { allocation: { devices: { results } }, reservedFor },
  }
}

const cdiSpec = {
  cdiVersion: '0.6.0',
  kind: 'skiff.test/widget',
  devices: [{ name: 'd0', containerEdits: { env: ['CDI_DEVICE=d0'], deviceNodes: [{ path: '/dev/d0', hostPath: '/dev/null' }] } }],
  containerEdits: { env: ['CDI_VENDOR=skiff'] },
}

for (const version of ['v1', 'v1beta1'] as const) {
  test(`DRA-03 a driver that speaks ${version} prepares a claim, its CDI device is in the container, and it unprepares in the end`, options, async () => {
    await mkdir(`${containerd.directory}/etc/cdi`, { recursive: true })
    await writeFile(`${containerd.directory}/etc/cdi/widget.json`, JSON.stringify(cdiSpec))
    const name = `claims-${version}`
    const plugin = await startNodePlugin({
      kind: 'dra',
      name: driver,
      version,
      socket: `${directory()}/${version}.sock`,
      registry: `${directory()}/plugins_registry/${driver}-reg.sock`,
      devices: [{ id: 'd0' }],
    })
    try {
      await until('it is registered', () => plugin.calls.some(({ method }) => method === 'NotifyRegistrationStatus'))
      assert.deepEqual(plugin.calls.at(-1)?.request, { pluginRegistered: true, error: '' })
      api.put('resourceclaims', claim(`claim-${version}`, name))
      const resources = { claims: [{ name: 'the-claim' }] }
      const script = 'echo $CDI_VENDOR $CDI_DEVICE; test -c /dev/d0 && echo there; exec sleep 1000'
      const wanting = pod(name, {}, script, { resourceClaims: [{ name: 'the-claim', resourceClaimName: `claim-${version}` }] })
      wanting.spec.containers[0]!.resources = resources
      api.put('pods', wanting)
      await runs(name)
      const read = () => readFile(`${containerd.directory}/logs/default_${name}_0000-${name}/main/0.log`, 'utf8')
      await until('it says what it sees', async () => /F there\n/.test(await read()))
      assert.match(await read(), /F skiff d0\n/)
      const prepared = plugin.calls.find(({ method }) => method === 'NodePrepareResources')
      assert.deepEqual(prepared?.request, { claims: [{ namespace: 'default', uid: `uid-claim-${version}`, name: `claim-${version}` }] })
      const health = () => status(name)?.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]
      await until('its health is told', () => health()?.resources?.[0]?.health === 'Healthy')
      plugin.tell({ unhealthy: ['d0'] })
      await until('that it is ill is told', () => health()?.resources?.[0]?.health === 'Unhealthy')
      assert.deepEqual(health(), { name: 'claim:the-claim', resources: [{ resourceID: 'skiff.test/widget=d0', health: 'Unhealthy' }] })
      api.deletePod('default', name, 1)
      await gone(name)
      assert.equal(plugin.calls.at(-1)?.method, 'NodeUnprepareResources')
      assert.match(await readFile(`${directory()}/dra_manager_state`, 'utf8'), /\\"Entries\\":\[\]/)
    } finally {
      await plugin.close()
    }
  })
}

test('DRA-03 a pod whose driver is not registered waits, with an event', options, async () => {
  api.put('resourceclaims', { ...claim('lonely', 'waits') })
  const wanting = pod('waits', {}, 'exit 0', { resourceClaims: [{ name: 'c', resourceClaimName: 'lonely' }] })
  api.put('pods', wanting)
  const message = `Failed to prepare dynamic resources: prepare dynamic resources: DRA driver ${driver} is not registered`
  await until('it says why', () => api.list<Event>('events').some((event) => event.reason === 'FailedPrepareDynamicResources' && event.message === message))
  assert.equal(status('waits')?.phase, 'Pending')
})

async function changeResources(name: string, change: (spec: Pod['spec']) => void): Promise<void> {
  const changed = deepCopy<Pod>(api.get<Pod>('pods', 'default', name) as Frozen<Pod>)
  change(changed.spec)
  api.put('pods', { ...changed, metadata: { ...changed.metadata, generation: (changed.metadata.generation ?? 0) + 1 } })
}

const limitsOf = (cpu: string, memory: string) => ({ requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu, memory } })
const condition = (name: string, type: string) => status(name)?.conditions?.find((candidate) => candidate.type === type)
const controller = (file: string, controllerName: string, name: string, id = '') =>
  readFile(`/sys/fs/cgroup/${controllerName}${containerd.cgroupRoot}/kubepods/burstable/pod0000-${name}/${id}${file}`, 'utf8').then((text) => text.trim())
const events = (name: string) => api.list<Event>('events').filter(({ involvedObject }) => involvedObject?.name === name)

test('KUB-22 a resize that is too large waits; the pod runs on with what it has', options, async () => {
  const grows = pod('grows', {})
  grows.spec.containers[0]!.resources = limitsOf('100m', '32Mi')
  api.put('pods', { ...grows, status: { phase: 'Pending', qosClass: 'Burstable' } })
  await runs('grows')
  await changeResources('grows', ({ containers }) => {
    containers[0]!.resources = { requests: { cpu: '100', memory: '16Mi' }, limits: { cpu: '100', memory: '32Mi' } }
  })
  await until('it is deferred', () => condition('grows', 'PodResizePending')?.reason === 'Deferred')
  const refusal = condition('grows', 'PodResizePending')
  assert.match(refusal?.message ?? '', /^Node didn't have enough resource: cpu, requested: 100000, used: \d+, capacity: \d+$/)
  assert.equal(refusal?.observedGeneration, 2)
  assert.equal(await controller('cpu.cfs_quota_us', 'cpu', 'grows', `${containerId('grows')}/`), '10000')
  assert.ok(events('grows').some(({ reason }) => reason === 'ResizeDeferred'))
  const before = containerId('grows')
  await changeResources('grows', ({ containers }) => {
    containers[0]!.resources = limitsOf('200m', '64Mi')
  })
  await until('it is given', () => status('grows')?.containerStatuses?.[0]?.resources?.limits?.memory === '64Mi')
  assert.deepEqual([condition('grows', 'PodResizePending'), condition('grows', 'PodResizeInProgress')], [undefined, undefined])
  assert.equal(containerId('grows'), before)
  assert.equal(await controller('memory.limit_in_bytes', 'memory', 'grows'), String(64 * 2 ** 20))
  assert.equal(await controller('memory.limit_in_bytes', 'memory', 'grows', `${before}/`), String(64 * 2 ** 20))
  assert.equal(await controller('cpu.cfs_quota_us', 'cpu', 'grows'), '20000')
  assert.deepEqual(
    events('grows')
      .map(({ reason }) => reason)
      .filter((reason) => reason?.startsWith('Resize')),
    ['ResizeDeferred', 'ResizeStarted', 'ResizeCompleted'],
  )
  const { entries } = JSON.parse(JSON.parse(await readFile(`${directory()}/allocated_pods_state`, 'utf8')).data)
  assert.deepEqual(entries['0000-grows'], { ContainerResources: { main: limitsOf('200m', '64Mi') }, PodLevelResources: null })
})

test('KUB-22 RES-06 a memory limit below current usage is refused with an error, and the resize is retried after usage drops', options, async () => {
  const holds = pod(
    'holds',
    {},
    'dd if=/dev/zero of=/dev/shm/x bs=1M count=40 2>/dev/null; while [ ! -e /dev/shm/go ]; do sleep 0.1; done; rm /dev/shm/x; exec sleep 1000',
  )
  holds.spec.containers[0]!.resources = limitsOf('500m', '96Mi')
  api.put('pods', { ...holds, status: { phase: 'Pending', qosClass: 'Burstable' } })
  await runs('holds')
  const used = async () => Number(await controller('memory.usage_in_bytes', 'memory', 'holds'))
  await until('it has the memory', async () => (await used()) > 40 * 2 ** 20)
  await changeResources('holds', ({ containers }) => {
    containers[0]!.resources = limitsOf('500m', '32Mi')
  })
  await until('it says why not', () => condition('holds', 'PodResizeInProgress')?.reason === 'Error')
  assert.match(
    condition('holds', 'PodResizeInProgress')?.message ?? '',
    /^cannot decrease memory limits: \[attempting to set pod memory limit \(33554432\) below current usage \(\d+\), attempting to set container "main" memory limit/,
  )
  assert.equal(await controller('memory.limit_in_bytes', 'memory', 'holds'), String(96 * 2 ** 20))
  const [pid] = (
    await readFile(`/sys/fs/cgroup/memory${containerd.cgroupRoot}/kubepods/burstable/pod0000-holds/${containerId('holds')}/cgroup.procs`, 'utf8')
  ).split('\n')
  await writeFile(`/proc/${pid}/root/dev/shm/go`, '')
  await until('it has given it back', async () => (await used()) < 32 * 2 ** 20)
  await changeResources('holds', () => {})
  await until(
    'it is over',
    async () =>
      condition('holds', 'PodResizeInProgress') === undefined && (await controller('memory.limit_in_bytes', 'memory', 'holds')) === String(32 * 2 ** 20),
  )
})

test('KUB-22 RES-02 a pod that asks as a whole is resized as a whole', options, async () => {
  const whole = pod('whole', {}, 'exec sleep 1000', { resources: { requests: { cpu: '50m', memory: '32Mi' }, limits: { cpu: '100m', memory: '64Mi' } } })
  api.put('pods', { ...whole, status: { phase: 'Pending', qosClass: 'Burstable' } })
  await runs('whole')
  assert.equal(await controller('memory.limit_in_bytes', 'memory', 'whole'), String(64 * 2 ** 20))
  const id = containerId('whole')
  await changeResources('whole', (spec) => {
    spec.resources = { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '200m', memory: '96Mi' } }
  })
  await until('it has more', async () => (await controller('memory.limit_in_bytes', 'memory', 'whole')) === String(96 * 2 ** 20))
  assert.equal(await controller('cpu.shares', 'cpu', 'whole'), '102')
  await until('its status says so', () => status('whole')?.resources?.limits?.memory === '96Mi')
  assert.deepEqual(status('whole')?.allocatedResources, { cpu: '100m', memory: '32Mi' })
  assert.equal(containerId('whole'), id)
})

test('KUB-14 kubepods has the limits of allocatable, and the burstable class its shares', options, async () => {
  const nodeEvents = api.list<Event>('events').filter(({ involvedObject }) => involvedObject?.kind === 'Node')
  assert.ok(nodeEvents.some(({ reason, message }) => reason === 'NodeAllocatableEnforced' && message === 'Updated Node Allocatable limit across pods'))
  assert.ok(nodeEvents.some(({ reason }) => reason === 'CgroupV1'))
  const at = (file: string, controllerName: string) =>
    readFile(`/sys/fs/cgroup/${controllerName}${containerd.cgroupRoot}/kubepods/${file}`, 'utf8').then(Number)
  assert.ok((await at('memory.limit_in_bytes', 'memory')) <= Number(/MemTotal:\s+(\d+)/.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]) * 1024)
  assert.ok((await at('cpu.shares', 'cpu')) >= 1024)
  assert.equal(await at('besteffort/cpu.shares', 'cpu'), 2)
  assert.ok((await at('burstable/cpu.shares', 'cpu')) > 2)
})
