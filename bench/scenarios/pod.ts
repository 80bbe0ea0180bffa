/**
 * A real pod: `kubectl apply` to Running, with the image on the node. The floor is what containerd itself needs for the same pod, measured in
 * the same run by calling it directly; the difference is what the cluster adds.
 */
import { execFile, execFileSync } from 'node:child_process'
import { accessSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { type CriClient, connectCri } from '#grpc/criClient'
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, withCluster } from '../tools/localCluster.ts'
import { median } from '../tools/statistics.ts'
import { watchLines } from '../tools/watchLines.ts'

const repeats = 10
const deadlineMs = 20_000
const image = 'skiff.internal/busybox:bench'
const command = ['sleep', '3600']
const podsPath = '/api/v1/namespaces/default/pods'
const execute = promisify(execFile)

export const pod: Scenario = {
  name: 'pod',
  about: 'a real pod, `kubectl apply` to Running, image on the node',
  skipped: () => {
    if (process.getuid?.() !== 0) return 'needs root'
    for (const [program, argument] of [
      ['containerd', '--version'],
      ['runc', '--version'],
      ['kubectl', 'version'],
    ] as const) {
      if (!runs(program, argument)) return `needs ${program}`
    }
    return exists('/bin/busybox') ? undefined : 'needs /bin/busybox (Debian: busybox-static)'
  },
  run: (context) => withCluster(context.dir, 'pod', ['--runtime', 'containerd'], (cluster) => measure(cluster, context)),
}

function runs(program: string, argument: string): boolean {
  try {
    execFileSync(program, [argument, ...(program === 'kubectl' ? ['--client'] : [])], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function exists(file: string): boolean {
  try {
    accessSync(file)
    return true
  } catch {
    return false
  }
}

async function measure(cluster: LocalCluster, context: ScenarioContext): Promise<Measurement[]> {
  const file = path.join(context.dir, 'busybox.tar')
  writeFileSync(file, await busyboxImage(createExec(), [image]))
  await runSkiff(cluster.home, 'image', 'load', file, '--name', cluster.name, '--quiet')
  const client = await createLoadClient(cluster.address)
  const { pid } = JSON.parse(readFileSync(path.join(cluster.dir, 'nodes', `${cluster.name}-node-1`, 'init.pid'), 'utf8')) as { pid: number }
  // The node has a /run of its own.
  const cri = connectCri(`/proc/${pid}/root/run/containerd/containerd.sock`)
  try {
    const samples = { apply: [] as number[], create: [] as number[], floor: [] as number[] }
    const watch = await watchRunning(client)
    for (let repeat = 0; repeat < repeats; repeat++) {
      context.signal.throwIfAborted()
      samples.floor.push(await floorOnce(cri, `floor-${repeat}`))
      samples.create.push(await createOnce(client, watch, `create-${repeat}`))
      samples.apply.push(await applyOnce(cluster, client, watch, `apply-${repeat}`))
      context.progress(`pod ${repeat + 1} of ${repeats}`)
    }
    const floor = median(samples.floor)
    const over = (values: readonly number[]) => values.map((value) => value - floor)
    return [
      { what: '"skiff up" with one real node and cluster DNS', unit: 'ms', values: [cluster.upMs] },
      { what: 'floor: RunPodSandbox + CreateContainer + StartContainer', unit: 'ms', values: samples.floor },
      { what: 'creation over the API to Running seen', unit: 'ms', values: samples.create },
      { what: 'the same over the floor', unit: 'ms', values: over(samples.create), target: { atMost: 100 } },
      { what: 'kubectl apply, its launch to Running seen', unit: 'ms', values: samples.apply },
    ]
  } finally {
    cri.close()
    client.close()
  }
}

interface RunningWatch {
  /** When the pod was seen to run. */
  running(name: string): Promise<number>
  gone(name: string): Promise<void>
}

async function watchRunning(client: LoadClient): Promise<RunningWatch> {
  const runningAt = new Map<string, number>()
  const deleted = new Set<string>()
  await watchLines(await client.connect(), `${podsPath}?watch=true`, (line) => {
    const name = /"name":"((?:create|apply)-\d+)"/.exec(line)?.[1]
    if (!name) return
    if (line.startsWith('{"type":"DELETED"')) deleted.add(name)
    else if (line.includes('"phase":"Running"') && !runningAt.has(name)) runningAt.set(name, performance.now())
  })
  return {
    running: (name) => until(`pod ${name} to run`, () => runningAt.get(name)),
    gone: async (name) => void (await until(`pod ${name} to be gone`, () => deleted.has(name) || undefined)),
  }
}

async function until<T>(what: string, done: () => T | undefined): Promise<T> {
  for (const deadline = performance.now() + deadlineMs; performance.now() < deadline; ) {
    const result = done()
    if (result !== undefined) return result
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  throw new Error(`waited in vain for ${what}`)
}

const manifest = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image, command, imagePullPolicy: 'IfNotPresent' }] },
})

async function createOnce(client: LoadClient, watch: RunningWatch, name: string): Promise<number> {
  const started = performance.now()
  await client.ask('POST', podsPath, manifest(name))
  return endOf(client, watch, name, started)
}

async function applyOnce(cluster: LocalCluster, client: LoadClient, watch: RunningWatch, name: string): Promise<number> {
  const file = path.join(path.dirname(cluster.kubeconfig), `${name}.json`)
  writeFileSync(file, JSON.stringify(manifest(name)))
  const started = performance.now()
  await execute('kubectl', ['--kubeconfig', cluster.kubeconfig, 'apply', '-f', file])
  return endOf(client, watch, name, started)
}

async function endOf(client: LoadClient, watch: RunningWatch, name: string, started: number): Promise<number> {
  const took = (await watch.running(name)) - started
  await client.ask('DELETE', `${podsPath}/${name}?gracePeriodSeconds=0`)
  await watch.gone(name)
  return took
}

/** The three calls that no kubelet gets around, then the clean-up, which does not count. */
async function floorOnce(cri: CriClient, name: string): Promise<number> {
  const { sandbox, container } = configs(name)
  const started = performance.now()
  const { podSandboxId } = await cri.call<{ podSandboxId: string }>('RuntimeService', 'RunPodSandbox', { config: sandbox })
  try {
    const request = { podSandboxId, config: container, sandboxConfig: sandbox }
    const { containerId } = await cri.call<{ containerId: string }>('RuntimeService', 'CreateContainer', request)
    await cri.call('RuntimeService', 'StartContainer', { containerId })
    return performance.now() - started
  } finally {
    await cri.call('RuntimeService', 'StopPodSandbox', { podSandboxId })
    await cri.call('RuntimeService', 'RemovePodSandbox', { podSandboxId })
  }
}

function configs(name: string): { sandbox: PodSandboxConfig; container: ContainerConfig } {
  const namespaceOptions = { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } as const
  return {
    sandbox: {
      metadata: { name, uid: name, namespace: 'bench', attempt: 0 },
      hostname: name,
      logDirectory: `/var/log/pods/bench_${name}`,
      portMappings: [],
      labels: {},
      annotations: {},
      linux: { cgroupParent: '', securityContext: { namespaceOptions }, sysctls: {} },
    },
    container: {
      metadata: { name: 'c', attempt: 0 },
      image: { image },
      command,
      args: [],
      workingDir: '',
      envs: [],
      mounts: [],
      devices: [],
      labels: {},
      annotations: {},
      logPath: 'c/0.log',
      stdin: false,
      stdinOnce: false,
      tty: false,
      linux: { resources: {}, securityContext: { namespaceOptions } },
    },
  }
}
