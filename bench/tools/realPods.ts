/**
 * Real pods to measure: the same small pod asked of the API, and of containerd itself by the three calls that no kubelet gets around. The
 * difference between the two is what the cluster adds.
 */
import { execFileSync } from 'node:child_process'
import { accessSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Pod } from '#api/gen/types/core.v1'
import { type CriClient, connectCri } from '#grpc/criClient'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { type BareNode, bareNode } from './barePods.ts'
import { createLoadClient, type LoadClient } from './load.ts'
import { type LocalCluster, runSkiff } from './localCluster.ts'
import { watchLines } from './watchLines.ts'

const deadlineMs = 120_000
const image = 'skiff.internal/busybox:bench'
/** What a pod runs, unless a benchmark says otherwise. */
export const benchContainer = { image, command: ['sleep', '3600'] } as const
export const podsPath = '/api/v1/namespaces/default/pods'

/** Why real pods cannot be measured here; undefined when they can. */
export function obstacleToPods(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root'
  for (const [program, ...args] of [
    ['containerd', '--version'],
    ['runc', '--version'],
    ['kubectl', 'version', '--client'],
  ] as const) {
    if (!succeeds(() => execFileSync(program, args, { stdio: 'ignore' }))) return `needs ${program}`
  }
  return succeeds(() => accessSync('/bin/busybox')) ? undefined : 'needs /bin/busybox (Debian: busybox-static)'
}

function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

export interface WaysToPods {
  readonly client: LoadClient
  /** The node's agent must be stopped: it would find pods that it does not know, and remove them. */
  readonly bare: BareNode
  /** Resolves when the node that runs the API's pods has nothing left of them: it has room for 110. */
  emptied(): Promise<void>
}

/** What {@link withPods} needs of its cluster: a node for the API's pods, and one for those by hand. */
export const nodesForPods = ['--runtime', 'containerd', '--nodes', '2'] as const

/** Puts the image of the pods on all nodes. */
export async function loadBenchImage(cluster: LocalCluster, dir: string): Promise<void> {
  const file = path.join(dir, 'busybox.tar')
  writeFileSync(file, await busyboxImage(createExec(), [image]))
  await runSkiff(cluster.home, 'image', 'load', file, '--name', cluster.name, '--quiet')
}

/** The two ways to the pods of a local cluster: over the API on its first node, and by containerd on its second. The image is on both. */
export async function withPods<T>(cluster: LocalCluster, dir: string, measure: (ways: WaysToPods) => Promise<T>): Promise<T> {
  await loadBenchImage(cluster, dir)
  const client = await createLoadClient(cluster.address)
  const [ofApi, byHand] = [1, 2].map((number) => connectCri(`/proc/${initPid(cluster, number)}/root/run/containerd/containerd.sock`)) as [CriClient, CriClient]
  await client.ask('PATCH', `/api/v1/nodes/${cluster.name}-node-2`, { spec: { unschedulable: true } }, 'application/merge-patch+json')
  const { cgroupRoot } = JSON.parse(readFileSync(path.join(cluster.dir, 'nodes', `${cluster.name}-node-2`, 'agent.json'), 'utf8')) as { cgroupRoot: string }
  const bare = bareNode(byHand, `/proc/${initPid(cluster, 2)}/root`, cgroupRoot, (name) => podManifest(name) as Pod)
  const agent = await agentPid(cluster, 2)
  process.kill(agent, 'SIGSTOP')
  const emptied = async () => {
    const sandboxes = async () => (await ofApi.call<{ items: unknown[] }>('RuntimeService', 'ListPodSandbox', {})).items.length
    await until('the node to be empty', async () => (await sandboxes()) === 0 || undefined)
  }
  try {
    return await measure({ client, bare, emptied })
  } finally {
    process.kill(agent, 'SIGCONT')
    ofApi.close()
    byHand.close()
    client.close()
  }
}

/** The node has a /run of its own. */
export function initPid({ dir, name }: LocalCluster, node: number): number {
  return (JSON.parse(readFileSync(path.join(dir, 'nodes', `${name}-node-${node}`, 'init.pid'), 'utf8')) as { pid: number }).pid
}

export async function agentPid({ home, name }: LocalCluster, node: number): Promise<number> {
  const { pids } = JSON.parse(await runSkiff(home, 'status', name, '-o', 'json')) as { pids: { role: string; pid: number; node?: string }[] }
  const pid = pids.find((one) => one.role === 'node' && one.node === `${name}-node-${node}`)?.pid
  if (!pid) throw new Error('the status names no agent of the node')
  return pid
}

export interface PodWatch {
  /** When the pod was seen to run. */
  running(name: string): Promise<number>
  gone(name: string): Promise<void>
}

/** Follows the pods of the default namespace. */
export async function watchPods(client: LoadClient): Promise<PodWatch> {
  const ran = createMoments()
  const deleted = createMoments()
  await watchLines(await client.connect(), `${podsPath}?watch=true`, (line) => {
    const name = /"name":"([a-z0-9-]+)","namespace":"default"/.exec(line)?.[1]
    if (!name) return
    if (line.startsWith('{"type":"DELETED"')) deleted.set(name)
    else if (line.includes('"phase":"Running"')) ran.set(name)
  })
  return {
    running: (name) => ran.of(name, `pod ${name} to run`),
    gone: async (name) => void (await deleted.of(name, `pod ${name} to be gone`)),
  }
}

/** When something first happened, by name. Waiting costs no processor time, which the measured programs share. */
function createMoments() {
  const first = new Map<string, number>()
  const waiters = new Map<string, (at: number) => void>()
  return {
    set(name: string): void {
      if (first.has(name)) return
      const nowMs = performance.now()
      first.set(name, nowMs)
      waiters.get(name)?.(nowMs)
    },
    async of(name: string, what: string): Promise<number> {
      const known = first.get(name)
      if (known !== undefined) return known
      let timer: NodeJS.Timeout | undefined
      try {
        return await new Promise((resolve, reject) => {
          waiters.set(name, resolve)
          timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), deadlineMs)
        })
      } finally {
        clearTimeout(timer)
        waiters.delete(name)
      }
    },
  }
}

/** Asks until there is an answer. */
export async function until<T>(what: string, done: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (const deadline = performance.now() + deadlineMs; performance.now() < deadline; ) {
    const result = await done()
    if (result !== undefined) return result
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  throw new Error(`waited in vain for ${what}`)
}

/** @param spec what else the pod's spec says */
export const podManifest = (name: string, container: object = benchContainer, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', imagePullPolicy: 'IfNotPresent', ...container }], ...spec },
})

/** Milliseconds from the request to create the pod until it was seen to run. */
export async function podByApi(client: LoadClient, watch: PodWatch, name: string): Promise<number> {
  const started = performance.now()
  await client.ask('POST', podsPath, podManifest(name))
  return (await watch.running(name)) - started
}

export async function removeByApi(client: LoadClient, watch: PodWatch, name: string): Promise<void> {
  await client.ask('DELETE', `${podsPath}/${name}?gracePeriodSeconds=0`)
  await watch.gone(name)
}
