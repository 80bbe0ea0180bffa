import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { Event, Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { createClient } from '#client/clientOverTransport'
import { connectCri } from '#grpc/criClient'
import { createExec } from '#host/exec'
import { inNetworkNamespace } from '#host/netns'
import { createKubeletHost } from '#kubelet/host'
import { createKubelet, type Kubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { createRealClock } from '#main/realClock'
import { KubeletApi } from './kubeletApi.ts'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'

const missing = await missingPrerequisite()
const options = { skip: missing ?? false, timeout: 120_000 }

let containerd: TestContainerd
let api: KubeletApi
let kubelet: Kubelet
let stop: AbortController
let running: Promise<void>
const clock = createRealClock()

async function startKubelet(): Promise<void> {
  const client = connectCri(containerd.socket)
  const host = await createKubeletHost()
  const exec = createExec(inNetworkNamespace(containerd.namespace))
  const runtime = createContainerdRuntime({ client, clock })
  const deps = { client: createClient(api), clock, random: seededRandom(1), log: noLog, metrics: noMetrics, runtime, host: { ...host, dial: dialIn(exec) } }
  kubelet = createKubelet(deps, {
    nodeName: 'node-1',
    nodeIPs: ['10.123.45.1'],
    rootDirectory: `${containerd.directory}/kubelet`,
    podLogsDirectory: `${containerd.directory}/logs`,
    cgroupRoot: containerd.cgroupRoot,
    clusterDNS: ['10.96.0.10'],
  })
  stop = new AbortController()
  running = kubelet.run(stop.signal).finally(() => client.close())
}

function dialIn(exec: ReturnType<typeof createExec>) {
  return async (host: string, port: number) => {
    const { Duplex } = await import('node:stream')
    const child = exec.spawn('busybox', ['nc', host, String(port)])
    return Duplex.from({ readable: child.stdout, writable: child.stdin })
  }
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
  stop.abort()
  await running
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
})

async function until<T>(what: string, condition: () => T | undefined | false | Promise<T | undefined | false>, timeoutMs = 30_000): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > deadline)
      throw new Error(
        `timed out waiting until ${what}: ${JSON.stringify(api.list<Pod>('pods').map((pod) => pod.status))} ${JSON.stringify(api.list<Event>('events').map((event) => event.message))}`,
      )
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function pod(name: string, script: string, spec: Partial<Pod['spec']> = {}, container: Partial<Pod['spec']['containers'][number]> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', generation: 1, uid: `0000-${name}`, labels: { app: name } },
    spec: {
      nodeName: 'node-1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: busybox, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script], ...container }],
      ...spec,
    },
    status: { phase: 'Pending' },
  }
}

const status = (name: string) => api.get<Pod>('pods', 'default', name)?.status
const phase = (name: string, wanted: string) => until(`${name} is ${wanted}`, () => status(name)?.phase === wanted)

async function logs(name: string): Promise<string> {
  const id = status(name)?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
  const container = await kubelet.view.runtime.containerStatus(id)
  assert.ok(container)
  const chunks: Uint8Array[] = []
  for await (const chunk of kubelet.view.runtime.logs(container, { follow: false, timestamps: false }, AbortSignal.timeout(5_000))) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

test('KUB-18 KUB-20 a pod runs to its end with its environment, volumes, hosts and last words', options, async () => {
  api.put('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' }, data: { color: 'blue' } })
  api.put('secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'keys', namespace: 'default' },
    data: { key: Buffer.from('s3cret').toString('base64') },
  })
  const script =
    'echo $GREETING; cat /cfg/color /sec/key /token/token; echo; cat /scratch/x; grep -c volumes-pod /etc/hosts; grep ndots /etc/resolv.conf; echo bye >/dev/termination-log'
  api.put(
    'pods',
    pod(
      'volumes-pod',
      script,
      {
        initContainers: [
          { name: 'init', image: busybox, command: ['sh', '-c', 'echo from-init >/scratch/x'], volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] },
        ],
        volumes: [
          { name: 'cfg', configMap: { name: 'settings' } },
          { name: 'sec', secret: { secretName: 'keys' } },
          { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
        ],
      },
      {
        env: [
          { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'GREETING', value: 'hello $(WHO)' },
        ],
        volumeMounts: [
          { name: 'cfg', mountPath: '/cfg' },
          { name: 'sec', mountPath: '/sec', readOnly: true },
          { name: 'scratch', mountPath: '/scratch' },
          { name: 'token', mountPath: '/token' },
        ],
      },
    ),
  )
  await phase('volumes-pod', 'Succeeded')
  assert.equal(await logs('volumes-pod'), 'hello volumes-pod\nblues3creta-token\nfrom-init\n1\noptions ndots:5\n')
  assert.equal(status('volumes-pod')?.containerStatuses?.[0]?.state?.terminated?.message, 'bye\n')
  await until('volumes are taken down', async () => !(await stat(`${containerd.directory}/kubelet/pods/0000-volumes-pod`).catch(() => undefined)))
})

test('KUB-14 KUB-06 limits reach the cgroups, and an HTTP probe makes the pod ready', options, async () => {
  const resources = { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '200m', memory: '64Mi' } }
  const readinessProbe = { httpGet: { port: 8080, path: '/ok' }, periodSeconds: 1 }
  const script = 'mkdir -p /www && echo fine >/www/ok && exec httpd -f -p 8080 -h /www'
  api.put('pods', pod('web', script, { restartPolicy: 'Always' }, { resources, readinessProbe }))
  await until('web is ready', () => status('web')?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'))
  assert.match(status('web')?.podIP ?? '', /^10\.123\.45\./)
  const group = `${containerd.cgroupRoot}/kubepods/burstable/pod0000-web`
  assert.equal(await readFile(`/sys/fs/cgroup/cpu${group}/cpu.shares`, 'utf8'), '102\n')
  assert.equal(await readFile(`/sys/fs/cgroup/memory${group}/memory.limit_in_bytes`, 'utf8'), `${64 * 2 ** 20}\n`)
})

test('KUB-08 deleting a pod that ignores TERM takes its grace period and leaves no cgroup', options, async () => {
  const startedMs = Date.now()
  api.deletePod('default', 'web', 1)
  await until('web is gone', () => status('web') === undefined)
  assert.ok(Date.now() - startedMs < 10_000)
  await until(
    'its cgroup is gone',
    async () => !(await stat(`/sys/fs/cgroup/cpu${containerd.cgroupRoot}/kubepods/burstable/pod0000-web`).catch(() => undefined)),
  )
})

test('KUB-02 KUB-05 a container that is killed restarts', options, async () => {
  api.put('pods', pod('restarts', 'sleep 1000', { restartPolicy: 'Always' }))
  await phase('restarts', 'Running')
  const id = status('restarts')?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
  await kubelet.view.runtime.stopContainer(id, 0)
  await until('it has restarted', () => status('restarts')?.containerStatuses?.[0]?.restartCount === 1 && status('restarts')?.phase === 'Running')
  const [container] = status('restarts')?.containerStatuses ?? []
  assert.equal(container?.lastState?.terminated?.exitCode, 137)
})

test('KUB-09 an out-of-memory kill is told as such', options, async () => {
  api.put('pods', pod('greedy', 'head -c 100m /dev/zero | tail', {}, { resources: { limits: { memory: '16Mi' } } }))
  await phase('greedy', 'Failed')
  assert.equal(status('greedy')?.containerStatuses?.[0]?.state?.terminated?.reason, 'OOMKilled')
})

test('a kubelet that restarts adopts what runs', options, async () => {
  const idBefore = status('restarts')?.containerStatuses?.[0]?.containerID
  stop.abort()
  await running
  await startKubelet()
  await kubelet.registered
  await until('the pod is known again', () => kubelet.view.podStatus('0000-restarts')?.containerStatuses?.[0]?.state?.running)
  assert.equal(status('restarts')?.containerStatuses?.[0]?.containerID, idBefore)
})
