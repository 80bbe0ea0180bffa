/** Looks at a real node of a local cluster from within (tests only): its processes, and what pods have there, counted. */
import assert from 'node:assert/strict'
import { createExec } from '#host/exec'
import type { LocalCluster } from '../../../e2e/support/localCluster.ts'

interface Status {
  readonly nodes: readonly { readonly address: string }[]
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
}

export interface PodJson {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  readonly status: {
    readonly phase?: string
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly {
      readonly containerID?: string
      readonly restartCount: number
      readonly state?: { readonly waiting?: { readonly reason: string } }
    }[]
  }
}

/** What pods have on a node, counted. */
export interface Traces {
  readonly mounts: number
  readonly interfaces: number
  readonly namespaces: number
  readonly shims: number
  readonly podDirectories: number
  readonly logDirectories: number
  readonly cgroups: number
}

export interface NodeView {
  /** The address at which others reach the node. */
  address(): Promise<string>
  /** A process as the host numbers it: 'init', 'node' (the agent) or 'server'. */
  pidOf(role: string): Promise<number>
  /** Runs a program in all namespaces of the node. */
  run(...command: string[]): Promise<string>
  /** Pods with that label `app`; all that were ever seen are remembered for traces(). */
  pods(app: string): Promise<PodJson[]>
  traces(): Promise<Traces>
  /** Kills the node's containerd; its shims and their containers stay. Answers with its number in the node. */
  killContainerd(): Promise<string>
}

export const lines = (text: string) => text.split('\n').filter((line) => line !== '')
export const isReady = (pod: PodJson) => pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
export const byName = (found: readonly PodJson[]) => found.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
export const containerOf = (pod: PodJson) => pod.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
export const restartsOf = (pod: PodJson) => pod.status.containerStatuses?.[0]?.restartCount

/** The counts are back where they were before there were pods. */
export const isClean = (now: Traces, before: Traces) => Object.entries(before).every(([kind, count]) => now[kind as keyof Traces] <= count)

export function viewNode(cluster: LocalCluster, name: string): NodeView {
  const exec = createExec()
  const seen = new Set<string>()
  const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
  const pidOf = async (role: string) => (await status()).pids.find((one) => one.role === role)?.pid ?? 0
  const run = async (...command: string[]): Promise<string> => {
    const { code, stdout, stderr } = await exec.run('nsenter', ['-t', String(await pidOf('init')), '-m', '-u', '-i', '-n', '-p', '--', ...command])
    assert.equal(code, 0, `${command.join(' ')}: ${stderr}`)
    return stdout
  }
  const count = async (script: string) => Number(await run('sh', '-c', `${script} | wc -l`))
  return {
    address: async () => (await status()).nodes[0]?.address ?? '',
    pidOf,
    run,
    pods: async (app) => {
      const { items } = JSON.parse(await cluster.must(['get', 'pods', '-l', `app=${app}`, '-o', 'json'])) as { items: PodJson[] }
      for (const { metadata } of items) seen.add(metadata.uid)
      return items
    },
    traces: async () => ({
      mounts: await count('grep -E "/var/lib/kubelet/pods/|/io.containerd.runtime|/run/netns/|/sandboxes/" /proc/self/mountinfo'),
      interfaces: await count('ip -o link show type veth'),
      namespaces: await count('ls /run/netns'),
      shims: await count('grep -ls containerd-shim /proc/[0-9]*/comm'),
      podDirectories: await count('ls /var/lib/kubelet/pods'),
      logDirectories: await count('ls /var/log/pods'),
      cgroups: seen.size === 0 ? 0 : await count(`find /sys/fs/cgroup -type d \\( ${[...seen].map((uid) => `-name pod${uid}`).join(' -o ')} \\) 2>/dev/null`),
    }),
    killContainerd: async () => {
      const pid = (await run('cat', '/run/containerd.pid')).trim()
      await run('kill', '-9', pid)
      return pid
    },
  }
}
