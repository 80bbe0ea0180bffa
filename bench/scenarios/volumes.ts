/**
 * Claims: how much later a pod runs that mounts a new one, many at once, what mounted volumes cost the kubelet, and snapshots. What is compared is
 * measured in turns, on one node.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { inParallel } from '../cluster/bareCluster.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { hostPathClass, localPathClass, podWithVolume, removeSnapshot, removeVolumes, snapshotOf, volumeIdOf } from '../tools/claims.ts'
import { costAtRest } from '../tools/costAtRest.ts'
import { contentOf, volumesByHand } from '../tools/driverCalls.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, withCluster } from '../tools/localCluster.ts'
import { agentPid, initPid, loadBenchImage, obstacleToPods, type PodWatch, watchPods } from '../tools/realPods.ts'
import { median, rounded } from '../tools/statistics.ts'

const repeats = 10
const crowd = 100
const sparseBytes = 2 ** 30
const dataBytes = 2 ** 28
const classes = [undefined, localPathClass, hostPathClass] as const

export const volumes: Scenario = {
  name: 'volumes',
  about: `claims of real pods, one and ${crowd} at once, and snapshots`,
  skipped: obstacleToPods,
  run: (context) => withCluster(context.dir, 'vol', ['--runtime', 'containerd', '--nodes', '1'], (cluster) => measure(cluster, context)),
}

interface Ways {
  readonly client: LoadClient
  readonly watch: PodWatch
  readonly cluster: LocalCluster
  readonly context: ScenarioContext
}

async function measure(cluster: LocalCluster, context: ScenarioContext): Promise<Measurement[]> {
  await loadBenchImage(cluster, context.dir)
  await runSkiff(cluster.home, 'addon', 'enable', 'csi-hostpath', '--cluster', cluster.name)
  const client = await createLoadClient(cluster.address)
  try {
    const ways: Ways = { client, watch: await watchPods(client), cluster, context }
    return [...(await single(ways)), ...(await together(ways)), ...(await snapshots(ways))]
  } finally {
    client.close()
  }
}

/** Pods without a claim and with one of each class, in turn. */
async function single({ client, watch, context }: Ways): Promise<Measurement[]> {
  const taken = classes.map(() => [] as number[])
  for (let repeat = 0; repeat < repeats; repeat++) {
    context.signal.throwIfAborted()
    for (const [index, storageClass] of classes.entries()) {
      const name = `one-${repeat}-${index}`
      taken[index]!.push(await podWithVolume(client, watch, name, storageClass))
      await removeVolumes(client, watch, [name], storageClass)
    }
  }
  context.progress(`${repeats} pods of each kind`)
  const [bare = [], local = [], hostPath = []] = taken
  const over = (values: readonly number[]) => values.map((value) => value - median(bare))
  return [
    { what: 'a pod without a claim, creation to Running seen', unit: 'ms', values: bare },
    { what: 'with a new claim of local-path, over that', unit: 'ms', values: over(local), target: { atMost: 250 } },
    { what: 'with a new claim of the host path CSI driver, over that', unit: 'ms', values: over(hostPath), target: { atMost: 450 } },
  ]
}

/** Many at once, and what they cost the kubelet afterwards. */
async function together(ways: Ways): Promise<Measurement[]> {
  const { client, watch, cluster, context } = ways
  const agent = await agentPid(cluster, 1)
  const crowdOf = async (prefix: string, storageClass?: string) => {
    const names = Array.from({ length: crowd }, (_, index) => `${prefix}-${index}`)
    const started = performance.now()
    await inParallel(crowd, (index) => podWithVolume(client, watch, names[index]!, storageClass), crowd)
    const totalMs = performance.now() - started
    const cost = await costAtRest(agent, context.signal)
    await removeVolumes(client, watch, names, storageClass)
    context.progress(`${crowd} pods, ${storageClass ?? 'without claims'}`)
    return { totalMs, cost }
  }
  const bare = await crowdOf('bare')
  const claimed = await crowdOf('claimed', hostPathClass)
  const floorMs = await volumesByHand(`/proc/${initPid(cluster, 1)}/root`, `${cluster.name}-node-1`, crowd)
  const ratio = claimed.totalMs / (bare.totalMs + floorMs)
  return [
    { what: `${crowd} pods without a claim at once, until the last runs`, unit: 'ms', values: [bare.totalMs] },
    { what: `floor: the driver's calls for ${crowd} volumes at once`, unit: 'ms', values: [floorMs] },
    { what: `${crowd} pods with a new claim each of that driver`, unit: 'ms', values: [claimed.totalMs] },
    { what: 'the same over the pods without a claim and the floor', unit: 'x', values: [ratio], target: { atMost: 1.3 } },
    {
      what: `the kubelet with ${crowd} mounted volumes, over ${crowd} pods without: memory (PSS)`,
      unit: 'MB',
      values: [claimed.cost.pssMB - bare.cost.pssMB],
      target: { atMost: 10 },
      note: `${rounded(claimed.cost.pssMB)} and ${rounded(bare.cost.pssMB)} MB`,
    },
    {
      what: 'the same: CPU of one core',
      unit: '%',
      values: [claimed.cost.cpuPercent - bare.cost.cpuPercent],
      target: { atMost: 0.5 },
      note: `${rounded(claimed.cost.cpuPercent)} and ${rounded(bare.cost.cpuPercent)} %`,
    },
  ]
}

/** A gibibyte that is one hole, and one with data: the floor of the latter is cp(1) with what the driver does after it. */
async function snapshots({ client, watch, cluster, context }: Ways): Promise<Measurement[]> {
  const name = 'source'
  await podWithVolume(client, watch, name, hostPathClass)
  const content = path.join(cluster.dir, 'nodes', `${cluster.name}-node-1`, 'kubelet', contentOf(await volumeIdOf(client, name)))
  const take = async (dataIn: number, snapshot: string) => {
    writeFile(path.join(content, 'data/file'), dataIn)
    execFileSync('sync', ['--file-system', content])
    const tookMs = await snapshotOf(client, name, snapshot)
    await removeSnapshot(client, snapshot)
    return { tookMs, floorMs: copyByHand(content) }
  }
  const sparse = await take(0, 'sparse')
  const full = await take(dataBytes, 'full')
  await removeVolumes(client, watch, [name], hostPathClass)
  context.progress('snapshots')
  return [
    { what: 'snapshot of a sparse file of 1 GiB, creation to ready', unit: 'ms', values: [sparse.tookMs], target: { atMost: 1000 } },
    { what: 'floor: its copy by cp and a flush', unit: 'ms', values: [sparse.floorMs] },
    { what: `snapshot of one with ${dataBytes / 2 ** 20} MiB of data`, unit: 'ms', values: [full.tookMs] },
    { what: 'floor: its copy by cp and a flush', unit: 'ms', values: [full.floorMs] },
    { what: 'the snapshot over its floor', unit: 'x', values: [full.tookMs / full.floorMs], target: { atMost: 1.2 } },
  ]
}

function writeFile(file: string, dataIn: number): void {
  const descriptor = openSync(file, 'w')
  try {
    const piece = Buffer.alloc(2 ** 20, 'data')
    for (let at = 0; at < dataIn; at += piece.length) writeSync(descriptor, piece, 0, piece.length, at)
    ftruncateSync(descriptor, sparseBytes)
  } finally {
    closeSync(descriptor)
  }
}

function copyByHand(content: string): number {
  const copy = `${content}.floor`
  const started = performance.now()
  execFileSync('cp', ['-a', '--reflink=auto', '--sparse=always', '--', content, copy])
  execFileSync('sync', ['--file-system', copy])
  const tookMs = performance.now() - started
  rmSync(copy, { recursive: true, force: true })
  return tookMs
}
