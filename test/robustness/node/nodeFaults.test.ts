/**
 * One real node whose parts are stopped or killed while pods serve: pods keep their processes or come back once, nobody is lost or doubled, and in the end
 * nothing is left of them: no mount, cgroup, interface, process or directory.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { createExec } from '../../../src/host/exec.ts'
import { eventually, LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { webCommand, writeWebImage } from '../../e2e/support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const name = 'node-faults'
const replicas = 4
const waitMs = 60_000
const exec = createExec()
let cluster: LocalCluster
let nodeAddress = ''
let clean: Traces | undefined

interface Status {
  readonly nodes: readonly { readonly address: string }[]
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
}
interface PodJson {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly status: {
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly {
      readonly containerID?: string
      readonly restartCount: number
      readonly state?: { readonly waiting?: { readonly reason: string } }
    }[]
  }
}

const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
const pidOf = async (role: string) => (await status()).pids.find((one) => one.role === role)?.pid ?? 0
/** Of every pod that this test has ever seen. */
const seen = new Set<string>()
async function pods(app = 'web'): Promise<PodJson[]> {
  const { items } = JSON.parse(await cluster.must(['get', 'pods', '-l', `app=${app}`, '-o', 'json'])) as { items: PodJson[] }
  for (const { metadata } of items) seen.add(metadata.uid)
  return items
}
const isReady = (pod: PodJson) => pod.status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false
const allReady = () =>
  eventually(
    'all pods ready, none more',
    waitMs,
    () => pods(),
    (found) => found.length === replicas && found.every(isReady),
  )
const byName = (found: readonly PodJson[]) => found.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()

/** Runs a program in all namespaces of the node. */
async function inNode(...command: string[]): Promise<string> {
  const { code, stdout, stderr } = await exec.run('nsenter', ['-t', String(await pidOf('init')), '-m', '-u', '-i', '-n', '-p', '--', ...command])
  assert.equal(code, 0, `${command.join(' ')}: ${stderr}`)
  return stdout
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '')

interface Traces {
  readonly mounts: number
  readonly interfaces: number
  readonly namespaces: number
  readonly shims: number
  readonly podDirectories: number
  readonly logDirectories: number
  readonly cgroups: number
}

/** What pods have on a node, counted. */
async function traces(): Promise<Traces> {
  const count = async (script: string) => Number(await inNode('sh', '-c', `${script} | wc -l`))
  return {
    mounts: await count('grep -E "/var/lib/kubelet/pods/|/io.containerd.runtime|/run/netns/|/sandboxes/" /proc/self/mountinfo'),
    interfaces: await count('ip -o link show type veth'),
    namespaces: await count('ls /run/netns'),
    shims: await count('grep -ls containerd-shim /proc/[0-9]*/comm'),
    podDirectories: await count('ls /var/lib/kubelet/pods'),
    logDirectories: await count('ls /var/log/pods'),
    cgroups: seen.size === 0 ? 0 : await count(`find /sys/fs/cgroup -type d \\( ${[...seen].map((uid) => `-name pod${uid}`).join(' -o ')} \\) 2>/dev/null`),
  }
}

/** The first process of each container of those pods, as the node numbers it. */
async function processes(): Promise<string[]> {
  const ids = (await pods()).map((pod) => pod.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '')
  const running = lines(await inNode('ctr', '-n', 'k8s.io', 'tasks', 'ls'))
  return ids.map((id) => running.find((line) => line.startsWith(id))?.replace(/\s+/g, ' ') ?? `${id} does not run`).sort()
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  nodeAddress = (await status()).nodes[0]?.address ?? ''
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  clean = await traces()
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: webCommand,
    ports: [{ containerPort: 8080 }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  }
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ ...container, volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] }],
      volumes: [{ name: 'scratch', emptyDir: { medium: 'Memory' } }],
    },
  }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas, selector: { matchLabels: { app: 'web' } }, template },
  }
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080, nodePort: 30_777 }] },
  }
  for (const object of [deployment, service]) await cluster.mustWith(JSON.stringify(object), ['apply', '-f', '-'])
  await allReady()
})

after(async () => {
  if (!skip) await cluster?.delete()
})

/** Asks the Service every 10 ms until told to stop. */
function poll() {
  const outcome = { answered: 0, failures: [] as string[] }
  let open = 0
  const ask = () => {
    open++
    const request = http.get({ host: nodeAddress, port: 30_777, agent: false, timeout: 10_000 }, (answer) => {
      if (answer.statusCode !== 200) outcome.failures.push(`status ${answer.statusCode}`)
      answer.resume()
      answer.once('end', () => outcome.answered++)
      answer.once('close', () => open--)
    })
    request.once('timeout', () => request.destroy(new Error('no answer within 10 s')))
    request.once('error', (error) => {
      outcome.failures.push(error.message)
      open--
    })
  }
  const timer = setInterval(ask, 10)
  return async () => {
    clearInterval(timer)
    await eventually(
      'the last answer',
      15_000,
      async () => open,
      (count) => count <= 0,
    )
    return outcome
  }
}

test('CRI-08 containers keep their processes through skiff stop and start, and no request through a Service fails', options, async () => {
  const [before_, processesBefore] = [byName(await pods()), await processes()]
  const stopPolling = poll()
  for (const command of ['stop', 'start']) {
    const { code, stderr } = await cluster.skiff([command, name])
    assert.equal(code, 0, stderr)
  }
  await allReady()
  const { answered, failures } = await stopPolling()
  assert.deepEqual(failures, [])
  assert.ok(answered > 20, `${answered} answers`)
  assert.deepEqual([byName(await pods()), await processes()], [before_, processesBefore])
})

test('CRI-08 the control plane and the agent killed at once: the pods are the same, with the same processes', options, async () => {
  const [before_, processesBefore] = [byName(await pods()), await processes()]
  const stopPolling = poll()
  for (const role of ['node', 'server']) process.kill(await pidOf(role), 'SIGKILL')
  const { code, stderr } = await cluster.skiff(['start', name])
  assert.equal(code, 0, stderr)
  await allReady()
  assert.deepEqual((await stopPolling()).failures, [])
  assert.deepEqual([byName(await pods()), await processes()], [before_, processesBefore])
})

test('KUB-02 a container whose shim is killed is restarted, in the same pod, once', options, async () => {
  const found = await pods()
  const victim = found[0]
  assert.ok(victim)
  const id = victim.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
  const sandbox = lines(await inNode('ctr', '-n', 'k8s.io', 'containers', 'info', id)).join('')
  const sandboxId = /"io.kubernetes.cri.sandbox-id": "([0-9a-f]+)"/.exec(sandbox)?.[1] ?? ''
  const shim = lines(await inNode('sh', '-c', `grep -ls ${sandboxId} /proc/[0-9]*/cmdline`))
    .map((file) => file.split('/')[2] ?? '')
    .find((pid) => pid !== '')
  assert.ok(shim, 'the shim is there')
  await inNode(
    'sh',
    '-c',
    `for p in $(grep -ls ${sandboxId} /proc/[0-9]*/cmdline); do d=\${p%/cmdline}; grep -q containerd-shim $d/comm && kill -9 \${d#/proc/}; done; true`,
  )
  const again = await eventually(
    'a new process of the same pod',
    waitMs,
    () => pods(),
    (now) => now.length === replicas && now.every(isReady) && now.every((pod) => pod.status.containerStatuses?.[0]?.containerID?.endsWith(id) === false),
  )
  assert.deepEqual(byName(again), byName(found))
})

test('KUB-02 a pod whose network namespace is gone gets another sandbox', options, async () => {
  const found = await pods()
  const victim = found[0]
  assert.ok(victim?.status.podIP)
  const namespaces = lines(await inNode('ls', '/run/netns'))
  for (const namespace of namespaces) {
    if (!(await inNode('nsenter', `--net=/run/netns/${namespace}`, 'ip', '-o', 'addr')).includes(` ${victim.status.podIP}/`)) continue
    await inNode('ip', 'netns', 'delete', namespace)
  }
  // Nothing in the runtime tells of it: the next look at the pod does.
  await cluster.must(['annotate', 'pod', victim.metadata.name, 'look=again'])
  const again = await eventually(
    'the pod with another address',
    waitMs,
    () => pods(),
    (now) => now.length === replicas && now.every(isReady) && now.find((pod) => pod.metadata.uid === victim.metadata.uid)?.status.podIP !== victim.status.podIP,
  )
  assert.deepEqual(byName(again), byName(found))
})

test('KUB-10 a pull that hangs and one that fails keep nobody else waiting, and the pods can be deleted', options, async (t) => {
  const sockets = new Set<net.Socket>()
  const silent = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => silent.listen(0, '0.0.0.0', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const host = /via (\S+)/.exec(await inNode('ip', 'route', 'show', 'default'))?.[1] ?? ''
  const { port } = silent.address() as net.AddressInfo
  const pod = (podName: string, image: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, labels: { app: 'pulls' } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image, imagePullPolicy: podName === 'present' ? 'IfNotPresent' : 'Always', command: ['sleep', '1000'] }],
    },
  })
  const manifests = [pod('hangs', `${host}:${port}/x:1`), pod('refused', '127.0.0.1:1/x:1'), pod('present', 'web-app:1.0')]
  for (const manifest of manifests) await cluster.mustWith(JSON.stringify(manifest), ['apply', '-f', '-'])
  await eventually(
    'the pod whose image is there',
    waitMs,
    () => pods('pulls'),
    (found) => found.some((one) => one.metadata.name === 'present' && isReady(one)),
  )
  await cluster.must(['delete', 'pod', '-l', 'app=pulls', '--wait=false'])
  await eventually(
    'the end of the pods',
    waitMs,
    () => pods('pulls'),
    (found) => found.length === 0,
  )
})

test('KUB-02 in the end nothing is left of pods: no mount, cgroup, interface, process or directory', options, async () => {
  await cluster.must(['delete', 'deployment,service', 'web'])
  await eventually(
    'the end of the pods',
    waitMs,
    () => pods(),
    (found) => found.length === 0,
  )
  const { mounts = 0, interfaces = 0 } = clean ?? {}
  const none = { namespaces: 0, shims: 0, podDirectories: 0, logDirectories: 0, cgroups: 0 }
  const isClean = (now: Traces) => now.mounts <= mounts && now.interfaces <= interfaces && Object.keys(none).every((key) => now[key as keyof Traces] === 0)
  await eventually(`a node as clean as before, ${JSON.stringify(clean)}`, waitMs, traces, isClean)
})
