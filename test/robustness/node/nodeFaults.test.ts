/**
 * One real node whose parts are stopped or killed while pods serve: pods keep their processes or restart once, no pod is lost or duplicated, and in
 * the end no mount, cgroup, interface, process or directory of them is left.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { eventually, LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { webCommand, writeWebImage } from '../../e2e/support/webImage.ts'
import { startRegistry } from '../../support/registry.ts'
import { byName, containerOf, isClean, isReady, lines, type NodeView, type PodJson, restartsOf, type Traces, viewNode } from './support/nodeView.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const name = 'node-faults'
const replicas = 4
const waitMs = 60_000
let cluster: LocalCluster
let node: NodeView
let nodeAddress = ''
let clean: Traces

const pods = (app = 'web') => node.pods(app)
const allReady = () =>
  eventually(
    'all pods ready, none more',
    waitMs,
    () => pods(),
    (found) => found.length === replicas && found.every(isReady),
  )
/** The first process of each container of those pods, as the node numbers it. */
async function processes(): Promise<string[]> {
  const ids = (await pods()).map(containerOf)
  const running = lines(await node.run('ctr', '-n', 'k8s.io', 'tasks', 'ls'))
  return ids.map((id) => running.find((line) => line.startsWith(id))?.replace(/\s+/g, ' ') ?? `${id} does not run`).sort()
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  node = viewNode(cluster, name)
  nodeAddress = await node.address()
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  clean = await node.traces()
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

/** Requests the Service every 10 ms until it is stopped. */
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
  for (const role of ['node', 'server']) process.kill(await node.pidOf(role), 'SIGKILL')
  const { code, stderr } = await cluster.skiff(['start', name])
  assert.equal(code, 0, stderr)
  await allReady()
  assert.deepEqual((await stopPolling()).failures, [])
  assert.deepEqual([byName(await pods()), await processes()], [before_, processesBefore])
})

test('CRI-08 containerd restarts after it is killed, the containers keep their processes, no request fails, and exec works again', options, async () => {
  const found = await pods()
  const processesBefore = await processes()
  const stopPolling = poll()
  const pid = await node.killContainerd()
  await eventually(
    'another containerd',
    waitMs,
    async () => (await node.run('cat', '/run/containerd.pid')).trim(),
    (now) => now !== pid,
  )
  await eventually(
    'a program runs in a container',
    waitMs,
    () => cluster.kubectl(['exec', found[0]?.metadata.name ?? '', '--', 'true']),
    ({ code }) => code === 0,
  )
  const again = await allReady()
  assert.deepEqual((await stopPolling()).failures, [])
  assert.deepEqual([byName(again), again.map(restartsOf), await processes()], [byName(found), found.map(restartsOf), processesBefore])
})

test('KUB-02 a container whose shim is killed is restarted, in the same pod, once', options, async () => {
  const found = await pods()
  const victim = found[0]
  assert.ok(victim)
  const id = containerOf(victim)
  const sandbox = lines(await node.run('ctr', '-n', 'k8s.io', 'containers', 'info', id)).join('')
  const sandboxId = /"io.kubernetes.cri.sandbox-id": "([0-9a-f]+)"/.exec(sandbox)?.[1] ?? ''
  const shim = lines(await node.run('sh', '-c', `grep -ls ${sandboxId} /proc/[0-9]*/cmdline`))
    .map((file) => file.split('/')[2] ?? '')
    .find((pid) => pid !== '')
  assert.ok(shim, 'the shim is there')
  await node.run(
    'sh',
    '-c',
    `for p in $(grep -ls ${sandboxId} /proc/[0-9]*/cmdline); do d=\${p%/cmdline}; grep -q containerd-shim $d/comm && kill -9 \${d#/proc/}; done; true`,
  )
  const again = await eventually(
    'a new process of the same pod',
    waitMs,
    () => pods(),
    (now) => now.length === replicas && now.every(isReady) && now.every((pod) => containerOf(pod) !== '' && containerOf(pod) !== id),
  )
  assert.deepEqual(byName(again), byName(found))
})

test('KUB-02 a pod whose network namespace is gone gets another sandbox', options, async () => {
  const found = await pods()
  const victim = found[0]
  assert.ok(victim?.status.podIP)
  const namespaces = lines(await node.run('ls', '/run/netns'))
  for (const namespace of namespaces) {
    if (!(await node.run('nsenter', `--net=/run/netns/${namespace}`, 'ip', '-o', 'addr')).includes(` ${victim.status.podIP}/`)) continue
    await node.run('ip', 'netns', 'delete', namespace)
  }
  // The runtime sends no event for it: the next sync of the pod finds it.
  await cluster.must(['annotate', 'pod', victim.metadata.name, 'look=again'])
  const again = await eventually(
    'the pod with another address',
    waitMs,
    () => pods(),
    (now) => now.length === replicas && now.every(isReady) && now.find((pod) => pod.metadata.uid === victim.metadata.uid)?.status.podIP !== victim.status.podIP,
  )
  assert.deepEqual(byName(again), byName(found))
})

/** A forwarder to a port that holds connections until it is opened. */
async function closedGate(t: TestContext, toPort: number) {
  const sockets = new Set<net.Socket>()
  let isOpen = false
  const letThrough = (socket: net.Socket) => {
    const inner = net.connect(toPort, '127.0.0.1')
    sockets.add(inner)
    inner.on('error', () => socket.destroy())
    socket.pipe(inner).pipe(socket)
  }
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    if (isOpen) letThrough(socket)
    sockets.add(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const open = () => {
    isOpen = true
    for (const socket of [...sockets]) letThrough(socket)
  }
  return { port: (server.address() as net.AddressInfo).port, open, visitors: () => sockets.size }
}

test(
  'KUB-10 a pull that hangs and one that fails keep no pod waiting whose image is there; the hanging pull continues when it is answered, the failed pod can be deleted',
  options,
  async (t) => {
    const registry = await startRegistry()
    t.after(() => registry.close())
    registry.put('x:1', await busyboxImage(createExec(), ['x:1']))
    const gate = await closedGate(t, Number(registry.address.split(':')[1]))
    const gateway = /via (\S+)/.exec(await node.run('ip', 'route', 'show', 'default'))?.[1] ?? ''
    const host = `${gateway}:${gate.port}`
    const hosts = `/etc/containerd/certs.d/${host}`
    await node.run('sh', '-c', `mkdir -p ${hosts} && printf 'server = "http://${host}"\n[host."http://${host}"]\n' >${hosts}/hosts.toml`)
    const pod = (podName: string, image: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: podName, labels: { app: 'pulls' } },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'c', image, imagePullPolicy: podName === 'present' ? 'IfNotPresent' : 'Always', command: ['sleep', '1000'] }],
      },
    })
    const manifests = [pod('hangs', `${host}/x:1`), pod('refused', '127.0.0.1:1/x:1'), pod('present', 'web-app:1.0')]
    for (const manifest of manifests) await cluster.mustWith(JSON.stringify(manifest), ['apply', '-f', '-'])
    const of = (name: string) => (found: readonly PodJson[]) => found.find(({ metadata }) => metadata.name === name)
    const waitsFor = (one: PodJson | undefined) => one?.status.containerStatuses?.[0]?.state?.waiting?.reason ?? ''
    const wait = (what: string, right: (found: PodJson[]) => boolean) => eventually(what, waitMs, () => pods('pulls'), right)
    await wait('the pod whose image is there runs', (found) => found.some((one) => one.metadata.name === 'present' && isReady(one)))
    await eventually(
      'the node asks the registry',
      waitMs,
      async () => gate.visitors(),
      (count) => count > 0,
    )
    assert.deepEqual([waitsFor(of('hangs')(await pods('pulls'))), registry.requests.length], ['ContainerCreating', 0])
    gate.open()
    // By default the kubelet pulls images one after the other: now it tries the one that fails.
    const over = await wait('the pull that hung is over, and the other has failed', (found) => {
      const hung = of('hangs')(found)
      return hung !== undefined && isReady(hung) && /ErrImagePull|ImagePullBackOff/.test(waitsFor(of('refused')(found)))
    })
    assert.equal(over.map(restartsOf).join(), '0,0,0')
    await cluster.must(['delete', 'pod', '-l', 'app=pulls', '--wait=false'])
    await wait('the end of the pods', (found) => found.length === 0)
  },
)

test('KUB-02 in the end nothing is left of pods: no mount, cgroup, interface, process or directory', options, async () => {
  await cluster.must(['delete', 'deployment,service', 'web'])
  await eventually(
    'the end of the pods',
    waitMs,
    () => pods(),
    (found) => found.length === 0,
  )
  await eventually(`a node as clean as before, ${JSON.stringify(clean)}`, waitMs, node.traces, (now) => isClean(now, clean))
})
