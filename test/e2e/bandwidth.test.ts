/**
 * Pods whose annotations limit their bandwidth, on a real node with the reference CNI plugins: the limits in the kernel, what they do to a transfer, and that nothing
 * stays. podNetworks.test.ts has the same for Skiff's own plugin. Real containerd, real kernel, real kubectl.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { after, before, test } from 'node:test'
import { echoPod } from './support/echoPod.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const obstacle = obstacleToCluster(true)
const skip = obstacle || (fs.existsSync('/usr/lib/cni/bandwidth') ? false : 'needs the reference CNI plugins')
const options = { skip, timeout: 180_000 }
const name = 'e2e-bandwidth'
let cluster: LocalCluster
let traces: ReturnType<typeof hostTraces>

/** Sends six megabytes to each client. */
const sender = `require('net').createServer((s) => { s.on('error', () => {}); s.end(Buffer.alloc(6_000_000)) }).listen(9000, '::')`
/** Prints how many bytes came within four seconds. */
const receiver = (address: string) =>
  `let n = 0; const s = require('net').connect(9000, '${address}'); s.on('data', (d) => n += d.length); s.on('error', (e) => console.log(e.code)); const end = () => { console.log(n); process.exit() }; s.on('end', end); setTimeout(end, 4000)`

before(async () => {
  if (skip) return
  traces = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '1'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  await apply([pod('free'), pod('slow', { 'kubernetes.io/ingress-bandwidth': '100k', 'kubernetes.io/egress-bandwidth': '200k' })])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

function pod(podName: string, annotations: Readonly<Record<string, string>> = {}) {
  const { metadata, spec, ...rest } = echoPod(podName, `${name}-node-1`)
  const [app] = spec.containers
  const container = { ...app, command: [process.execPath, '-e', sender], readinessProbe: { tcpSocket: { port: 9000 }, periodSeconds: 1 } }
  return { ...rest, metadata: { ...metadata, annotations }, spec: { ...spec, containers: [container] } }
}

const apply = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])

interface Qdisc {
  readonly kind: string
  readonly dev: string
  readonly options: { readonly rate?: number }
}

async function onNode(...command: string[]): Promise<string> {
  const { pids } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as { pids: { role: string; pid: number }[] }
  return execFileSync('nsenter', ['-t', String(pids.find(({ role }) => role === 'init')?.pid), '-m', '-n', '--', ...command], { encoding: 'utf8' })
}

/** The buckets of the node: the beginning of the device's name, and bits per second. */
async function limits(): Promise<string[]> {
  const shown = JSON.parse(await onNode('tc', '-json', 'qdisc', 'show')) as Qdisc[]
  return shown.filter(({ kind }) => kind === 'tbf').map(({ dev, options: { rate = 0 } }) => `${dev.slice(0, 3)} ${rate * 8}`)
}

test('NET-04 the annotations of a pod limit what it receives and sends, and no other pod', options, async () => {
  assert.deepEqual((await limits()).sort(), ['bwp 200000', 'vet 100000'])
  const ip = (of: string) => cluster.must(['get', 'pod', of, '-o', 'jsonpath={.status.podIP}'])
  const received = async (to: string, from: string) =>
    Number((await cluster.kubectl(['exec', to, '--', process.execPath, '-e', receiver(await ip(from))])).stdout)
  const [incoming, outgoing] = await Promise.all([received('slow', 'free'), received('free', 'slow')])
  // The buckets hold some seconds of the rate, and begin full.
  for (const bytes of [incoming, outgoing]) assert.ok(bytes > 100_000 && bytes < 5_900_000, `${incoming} ${outgoing}`)
  await apply([pod('other')])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/other', '--timeout=60s'])
  assert.equal(await received('other', 'free'), 6_000_000)
})

test('NET-04 a pod with an annotation that is no bandwidth does not start, and an Event says why', options, async () => {
  await apply([pod('tiny', { 'kubernetes.io/ingress-bandwidth': '10' }), pod('word', { 'kubernetes.io/egress-bandwidth': 'fast' })])
  for (const [of, reason] of [
    ['tiny', /resource is unreasonably small \(< 1kbit\)/],
    ['word', /quantities must match the regular expression/],
  ] as const)
    await eventually(
      `the Event of ${of}`,
      20_000,
      () =>
        cluster.must(['get', 'events', '--field-selector', `involvedObject.name=${of},reason=FailedCreatePodSandBox`, '-o', 'jsonpath={.items[*].message}']),
      (text) => reason.test(text),
    )
  await cluster.must(['delete', 'pod', 'tiny', 'word', '--wait=true'])
})

test('NET-04 the limits and the device that was made for them end with the pod', options, async () => {
  await cluster.must(['delete', 'pod', 'slow', '--wait=true'])
  await eventually('the end of the limits', 20_000, limits, (all) => all.length === 0)
  await eventually(
    'the end of the device',
    20_000,
    () => onNode('ip', '-o', 'link', 'show', 'type', 'ifb'),
    (text) => text === '',
  )
  await cluster.delete()
  assert.deepEqual(newTraces(traces), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
