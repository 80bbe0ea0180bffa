import assert from 'node:assert/strict'
import { readdir, readFile, stat } from 'node:fs/promises'
import https from 'node:https'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import type { Event, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { createClient } from '#client/clientOverTransport'
import { connectCri } from '#grpc/criClient'
import { createKubeletHost } from '#kubelet/core/host'
import { createKubelet, type Kubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { createRealClock } from '#main/realClock'
import { dialPortForward, dialRemoteCommand } from '#streaming/spdyClient'
import { connectionsOver, openTunnel } from '#testing/tunnelClient'
import { KubeletApi } from './kubeletApi.ts'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'
import { withKubeletServer } from './support/kubeletServer.ts'
import { createNamespaceDialer, type NamespaceDialer } from './support/namespaceDialer.ts'
import { numbered, take } from './support/streamBytes.ts'

const missing = await missingPrerequisite()
const options = { skip: missing ?? false, timeout: 120_000 }

let containerd: TestContainerd
let dialer: NamespaceDialer
let api: KubeletApi
let kubelet: Kubelet
let stop: AbortController
let running: Promise<void>
const clock = createRealClock()

async function startKubelet(): Promise<void> {
  const client = connectCri(containerd.socket)
  const host = await createKubeletHost()
  const runtime = createContainerdRuntime({ client, clock })
  const deps = { client: createClient(api), clock, random: seededRandom(1), log: noLog, metrics: noMetrics, runtime, host: { ...host, dial: dialer.dial } }
  kubelet = createKubelet(deps, {
    nodeName: 'node-1',
    nodeIPs: ['10.123.45.1'],
    rootDirectory: `${containerd.directory}/kubelet`,
    podLogsDirectory: `${containerd.directory}/logs`,
    cgroupRoot: containerd.cgroupRoot,
    clusterDNS: ['10.96.0.10'],
    containerLogMaxSizeBytes: 20_000,
    containerLogMonitorIntervalMs: 500,
  })
  stop = new AbortController()
  running = kubelet.run(stop.signal).finally(() => client.close())
}

before(async () => {
  if (missing) return
  containerd = await startContainerd()
  dialer = createNamespaceDialer(containerd.namespace)
  api = new KubeletApi(() => clock.now())
  await startKubelet()
})

after(async () => {
  if (missing) return
  for (const { metadata } of api.list<Pod>('pods')) api.deletePod(metadata.namespace ?? '', metadata.name ?? '', 1)
  await until('all pods are gone', () => api.list('pods').length === 0).catch(() => {})
  stop.abort()
  await running
  await dialer.close()
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

/** Asks again until every assertion holds; at the deadline the last one that did not is thrown. */
async function untilHolds(assertions: () => Promise<void>, timeoutMs = 30_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      return await assertions()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
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

test('KUB-22 a resize changes the cgroups of the running container', options, async () => {
  const idBefore = status('web')?.containerStatuses?.[0]?.containerID
  const web = deepCopy<Pod>(api.get<Pod>('pods', 'default', 'web') as Frozen<Pod>)
  const [container] = web.spec.containers
  if (container) container.resources = { requests: { cpu: '200m', memory: '32Mi' }, limits: { cpu: '400m', memory: '96Mi' } }
  api.put('pods', { ...web, metadata: { ...web.metadata, generation: 2 } })
  await until('the status tells', () => status('web')?.containerStatuses?.[0]?.resources?.limits?.memory === '96Mi')
  const group = `${containerd.cgroupRoot}/kubepods/burstable/pod0000-web`
  const id = idBefore?.replace('containerd://', '')
  assert.equal(await readFile(`/sys/fs/cgroup/memory${group}/${id}/memory.limit_in_bytes`, 'utf8'), `${96 * 2 ** 20}\n`)
  assert.equal(await readFile(`/sys/fs/cgroup/cpu${group}/cpu.shares`, 'utf8'), '204\n')
  assert.equal(status('web')?.containerStatuses?.[0]?.containerID, idBefore)
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

test('KUB-08 a deletion does not wait for the long grace of a probe’s kill', options, async () => {
  const livenessProbe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 }
  api.put('pods', pod('stubborn', 'trap "" TERM; sleep 1000', { restartPolicy: 'Always', terminationGracePeriodSeconds: 60 }, { livenessProbe }))
  await until('the probe kills', () => api.list<Event>('events').some((event) => event.reason === 'Killing' && event.involvedObject.name === 'stubborn'))
  api.deletePod('default', 'stubborn', 1)
  await until('stubborn is gone', () => status('stubborn') === undefined, 15_000)
})

test('KUB-02 KUB-05 a killed container restarts, and the runtime reports its exit, but not the exit of exec commands', options, async () => {
  api.put('pods', pod('restarts', 'sleep 1000', { restartPolicy: 'Always' }))
  await phase('restarts', 'Running')
  const told: string[] = []
  const stopListening = new AbortController()
  const listening = (async () => {
    for await (const { containerId } of kubelet.view.runtime.events(stopListening.signal)) told.push(containerId)
  })()
  const id = status('restarts')?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
  assert.equal((await kubelet.view.runtime.execSync(id, ['true'], 30)).exitCode, 0)
  await kubelet.view.runtime.stopContainer(id, 0)
  await until('it is told', () => told.includes(id))
  stopListening.abort()
  await listening
  assert.equal(told.filter((one) => one === id).length, 1)
  await until('it has restarted', () => status('restarts')?.containerStatuses?.[0]?.restartCount === 1 && status('restarts')?.phase === 'Running')
  const [container] = status('restarts')?.containerStatuses ?? []
  assert.equal(container?.lastState?.terminated?.exitCode, 137)
})

test('KUB-09 an out-of-memory kill has the reason OOMKilled', options, async () => {
  api.put('pods', pod('greedy', 'head -c 100m /dev/zero | tail', {}, { resources: { limits: { memory: '16Mi' } } }))
  await phase('greedy', 'Failed')
  assert.equal(status('greedy')?.containerStatuses?.[0]?.state?.terminated?.reason, 'OOMKilled')
})

const withServer = (run: Parameters<typeof withKubeletServer>[2]) => withKubeletServer(kubelet.view, clock, run)

function getText(url: string, tls: object): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { ...tls, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject)
    })
    request.on('error', reject)
    request.end()
  })
}

test('KUB-17 KUB-25 the kubelet API: exec with input and exit codes, logs, port-forward, pods, stats', options, async () => {
  const script = 'mkdir -p /www && echo forwarded >/www/x && httpd -p 8080 -h /www; echo one; echo two; echo three; sleep 1000'
  api.put('pods', pod('served', script, { restartPolicy: 'Always' }))
  await phase('served', 'Running')
  await withServer(async (port, tls) => {
    const base = `https://127.0.0.1:${port}`
    const refused = await getText(`${base}/pods`, { ca: tls.ca })
    assert.deepEqual(refused, { status: 401, body: 'Unauthorized' })
    const tail = await until('three lines are logged', async () => {
      const answer = await getText(`${base}/containerLogs/default/served/main?tailLines=2`, tls)
      return answer.body.includes('three') && answer
    })
    assert.deepEqual(tail, { status: 200, body: 'two\nthree\n' })
    const missing = await getText(`${base}/containerLogs/default/served/main?previous=true`, tls)
    assert.deepEqual(missing, { status: 400, body: 'previous terminated container "main" in pod "served" not found' })

    const query = new URLSearchParams([
      ['command', 'sh'],
      ['command', '-c'],
      ['command', 'read line; echo "got $line"; echo oops >&2; exit 7'],
      ['input', '1'],
      ['output', '1'],
      ['error', '1'],
    ])
    const command = await dialRemoteCommand(`${base}/exec/default/served/main?${query}`, { stdin: true, stdout: true, stderr: true, tty: false }, { tls })
    command.stdin?.end('input\n')
    const [stdout, stderr, result] = await Promise.all([text(command.stdout ?? Readable.from([])), text(command.stderr ?? Readable.from([])), command.result])
    assert.deepEqual([stdout, stderr, result], ['got input\n', 'oops\n', { exitCode: 7 }])
    command.close()

    const forward = await dialPortForward(`${base}/portForward/default/served`, { tls })
    const { data } = await forward.connect(8080)
    data.write('GET /x HTTP/1.0\r\n\r\n')
    assert.match(await text(data), /forwarded/)
    forward.close()

    const list = JSON.parse((await getText(`${base}/pods`, tls)).body) as { items: Pod[] }
    assert.ok(list.items.some((item) => item.metadata.name === 'served' && item.status.phase === 'Running'))
    const ran = JSON.parse((await getText(`${base}/runningpods`, tls)).body) as { items: Pod[] }
    assert.ok(ran.items.some(({ metadata, spec }) => metadata.name === 'served' && spec.containers[0]?.name === 'main'))
    const output = await getText(`${base}/run/default/served/main?cmd=${encodeURIComponent('cat /www/x')}`, { ...tls, method: 'POST' })
    assert.deepEqual(output, { status: 200, body: 'forwarded\n' })
    const checkpoint = await getText(`${base}/checkpoint/default/served/main`, { ...tls, method: 'POST' })
    assert.equal(checkpoint.status, 500)
    assert.match(checkpoint.body, /^checkpointing of default\/served\/main failed \(.*CheckpointContainer/)
  })
})

async function streamsPod(): Promise<void> {
  api.put('pods', pod('streams', 'nc -ll -p 9000 -e cat & exec cat', { restartPolicy: 'Always' }, { stdin: true }))
  await phase('streams', 'Running')
}

const big = numbered(2_000_000)
const commands = [
  { name: 'prints nothing', script: 'exit 3', input: undefined, output: Buffer.alloc(0), exitCode: 3 },
  { name: 'prints much', script: 'yes | head -c 2000000; exit 5', input: undefined, output: Buffer.from('y\n'.repeat(1_000_000)), exitCode: 5 },
  { name: 'echoes its input', script: 'cat', input: big, output: big, exitCode: 0 },
  { name: 'never reads its input', script: 'echo done; exit 7', input: 'drips' as const, output: Buffer.from('done\n'), exitCode: 7 },
]

test('KUB-17 ARC-05 four concurrent commands keep their output and status, also with input after their end', options, async () => {
  await streamsPod()
  await withServer(async (port, tls) => {
    const run = async ({ script, input, ...wanted }: (typeof commands)[number]) => {
      const query = new URLSearchParams({ input: '1', output: '1', error: '1' })
      for (const word of ['sh', '-c', script]) query.append('command', word)
      const command = await dialRemoteCommand(
        `https://127.0.0.1:${port}/exec/default/streams/main?${query}`,
        { stdin: true, stdout: true, stderr: true, tty: false },
        { tls },
      )
      // One small write after another, to the end and beyond.
      const drip = () => void (command.stdin?.writable && command.stdin.write('x', () => setImmediate(drip)))
      if (input === 'drips') drip()
      else if (input) command.stdin?.end(input)
      command.stderr?.resume()
      const [output, result] = await Promise.all([take(command.stdout ?? assert.fail(), Number.POSITIVE_INFINITY), command.result])
      command.close()
      assert.deepEqual([result, output.length, output.equals(wanted.output)], [{ exitCode: wanted.exitCode }, wanted.output.length, true], wanted.name)
    }
    for (let round = 0; round < 8; round++) await Promise.all(commands.map(run))
  })
})

test('KUB-17 ARC-05 port-forward and attach carry megabytes both ways, byte for byte', options, async () => {
  await streamsPod()
  await withServer(async (port, tls) => {
    const url = `https://127.0.0.1:${port}/portForward/default/streams`
    for (const forward of [await dialPortForward(url, { tls }), connectionsOver(await openTunnel(url, tls))]) {
      const echoed = async () => {
        const { data } = await forward.connect(9000)
        data.write(big)
        const back = await take(data, big.length)
        data.destroy()
        return back.equals(big)
      }
      assert.deepEqual(await Promise.all([echoed(), echoed(), echoed()]), [true, true, true])
      forward.close()
    }

    const attached = await dialRemoteCommand(
      `https://127.0.0.1:${port}/attach/default/streams/main?input=1&output=1&error=1`,
      { stdin: true, stdout: true, stderr: true, tty: false },
      { tls },
    )
    attached.stdin?.write(big)
    assert.ok((await take(attached.stdout ?? assert.fail(), big.length)).equals(big))
    attached.close()
  })
})

test('KUB-17 ARC-05 clients that never read the output of their commands hold the commands back, and cost the kubelet no memory', options, async () => {
  await streamsPod()
  await withServer(async (port, tls) => {
    const before_ = process.memoryUsage()
    const streams = { stdin: false, stdout: true, stderr: true, tty: false }
    const query = new URLSearchParams({ output: '1', error: '1' })
    for (const word of ['sh', '-c', 'yes']) query.append('command', word)
    const unread = await Promise.all(
      Array.from({ length: 20 }, () => dialRemoteCommand(`https://127.0.0.1:${port}/exec/default/streams/main?${query}`, streams, { tls })),
    )
    // Much longer than the buffers between the command and the client take to fill.
    await clock.sleep(3000)
    const { arrayBuffers, rss } = process.memoryUsage()
    for (const command of unread) command.close()
    assert.ok(arrayBuffers - before_.arrayBuffers < 64 * 2 ** 20, `${arrayBuffers - before_.arrayBuffers} bytes of buffers`)
    assert.ok(rss - before_.rss < 256 * 2 ** 20, `${rss - before_.rss} bytes of memory`)
  })
})

test('KUB-17 OBS-10 stats/summary, metrics/resource and metrics/cadvisor tell what pods use, of their cgroups', options, async () => {
  const script = 'dd if=/dev/zero of=/data/f bs=1M count=3; echo logged; while :; do :; done'
  const volume = { volumes: [{ name: 'data', emptyDir: {} }] }
  const limits = { resources: { limits: { cpu: '100m', memory: '64Mi' } }, volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  api.put('pods', pod('measured', script, { restartPolicy: 'Always', ...volume }, limits))
  await phase('measured', 'Running')
  await withServer(async (port, tls) => {
    const base = `https://127.0.0.1:${port}`
    interface Summary {
      node: { cpu: { usageCoreNanoSeconds: number }; fs: { capacityBytes: number } }
      pods: {
        podRef: { name: string }
        cpu: { usageCoreNanoSeconds: number }
        memory: { workingSetBytes: number }
        network: { name: string; rxBytes: number }
        volume: { name: string; usedBytes: number }[]
        process_stats: { process_count: number }
        containers: { name: string; memory: { availableBytes: number }; logs: { usedBytes: number } }[]
      }[]
    }
    // A container that just started has used nothing, and no interface or volume of it was looked at yet.
    await untilHolds(async () => {
      const { node, pods } = JSON.parse((await getText(`${base}/stats/summary`, tls)).body) as Summary
      assert.ok(node.fs.capacityBytes > 0 && node.cpu.usageCoreNanoSeconds > 0)
      const measured = pods.find((entry) => entry.podRef.name === 'measured')
      assert.ok(measured && measured.cpu.usageCoreNanoSeconds > 0 && measured.memory.workingSetBytes > 0)
      assert.equal(measured.network.name, 'eth0')
      assert.ok(measured.process_stats.process_count >= 2)
      const available = measured.containers[0]?.memory.availableBytes ?? 0
      assert.ok(available > 0 && available < 64 * 2 ** 20)
      assert.deepEqual(
        measured.volume.map(({ name }) => name),
        ['data'],
      )
    })
    await untilHolds(async () => {
      const { body } = await getText(`${base}/metrics/resource`, tls)
      assert.match(body, /container_memory_working_set_bytes\{container="main",namespace="default",pod="measured"\} [1-9]/)
      assert.match(body, /pod_cpu_usage_seconds_total\{namespace="default",pod="measured"\} \d/)
    })
    const id = `${containerd.cgroupRoot}/kubepods/pod0000-measured/`
    const families = [
      new RegExp(
        `^container_cpu_usage_seconds_total\\{container="main",cpu="total",id="${id}\\w+",image="[^"]+busybox[^"]*",name="\\w+",namespace="default",pod="measured"\\} `,
        'm',
      ),
      new RegExp(`^container_memory_working_set_bytes\\{container="main",id="${id}\\w+",.*pod="measured"\\} [1-9]`, 'm'),
      new RegExp(
        `^container_network_receive_bytes_total\\{container="",id="${id}\\w+",image="[^"]+",interface="eth0",name="\\w+",namespace="default",pod="measured"\\} \\d`,
        'm',
      ),
      new RegExp(`^container_spec_memory_limit_bytes\\{container="main",.*pod="measured"\\} ${64 * 2 ** 20} `, 'm'),
      /^container_cpu_cfs_periods_total\{container="main".*pod="measured"\} [1-9]/m,
      /^machine_cpu_cores\{boot_id="[^"]+"/m,
    ]
    await untilHolds(async () => {
      const { body } = await getText(`${base}/metrics/cadvisor`, tls)
      for (const family of families) assert.match(body, family)
    })
  })
})

test('KUB-25 logs -f of a fast writer loses no line while its log is rotated and compressed', options, async () => {
  const script = 'i=0; while [ $i -lt 6000 ]; do echo line-$i; i=$((i+1)); [ $((i % 200)) -eq 0 ] && sleep 0.2; done; exec sleep 1000'
  api.put('pods', pod('rotated', script, { restartPolicy: 'Always' }))
  await phase('rotated', 'Running')
  const directory = `${containerd.directory}/logs/default_rotated_0000-rotated/main`
  await withServer(async (port, tls) => {
    const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      https.get(`https://127.0.0.1:${port}/containerLogs/default/rotated/main?follow=true`, { ...tls, agent: false }, resolve).on('error', reject)
    })
    let output = ''
    for await (const chunk of response) {
      output += String(chunk)
      if (output.endsWith('line-5999\n')) break
    }
    const numbers = output
      .trimEnd()
      .split('\n')
      .map((line) => Number(line.slice('line-'.length)))
    // As upstream, a reader that starts after a rotation begins with the newest file; from there on no line may be missing.
    const [first = 0] = numbers
    assert.ok(first < 3000, String(first))
    assert.deepEqual(
      numbers,
      Array.from({ length: 6000 - first }, (_, index) => first + index),
    )
    const files = await until('rotated files are compressed', async () => {
      const names = await readdir(directory)
      return names.some((name) => name.endsWith('.gz')) && names
    })
    // While one is compressed it is there twice, and a part of it.
    const rotations = new Set(files.map((name) => name.replace(/(\.gz|\.tmp)+$/, '')))
    assert.ok(rotations.size <= 5, files.join())
  })
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
