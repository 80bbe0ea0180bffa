/**
 * `skiff leave` (L5): takes this machine out of the cluster that it has joined, as a node, as a control plane, or as both: first what the cluster has to know, then
 * what is on the machine. It can be repeated after a failure. Upstream: kubeadm reset (v1.36).
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { noMetrics } from '#base/metrics'
import { printable } from '#base/printable'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { nodes } from '#client/builtIn'
import type { Client } from '#client/client'
import { createExec } from '#host/exec'
import { createMounter } from '#host/mounts'
import { openAccess } from '../component/access.ts'
import { done } from '../join/progressLines.ts'
import { drainNode } from '../leave/drainNode.ts'
import { isListening, removeFiles, removeMounted, removeSandboxes, runtimeSocket } from '../leave/hostCleanup.ts'
import { type JoinedParts, joinedParts } from '../leave/joinedParts.ts'
import { type LeaveOptions, readLeaveOptions } from '../leave/leaveOptions.ts'
import { memberAt, ownAddresses, removeOwnMember, withPlannedEtcd } from '../leave/ownEtcdMember.ts'
import { createRealClock } from '../realClock.ts'
import { removeUnit } from '../systemd/units.ts'

const askMs = 10_000

const help = `Takes this machine out of the cluster that it joined with skiff join: as a node, as a control plane, or as both.

Usage:
  skiff leave [flags]

      --drain                  evict the node's pods first, as PodDisruptionBudgets allow, and wait until they are gone
      --drain-timeout          how long to wait for that (default: 5m)
      --keep-node              leave the Node object in the cluster
      --remove-etcd-member     of a control plane: first take the member of the cluster's etcd out that runs on this machine
      --kubeconfig             whose rights drain the node and delete its object (default: this machine's administrator, or its kubelet, which may not delete it)
      --cri-socket             the container runtime, whose pods are removed (default: the one of the kubelet's configuration)
      --config-dir             as of skiff join (default: /etc/kubernetes)
      --root-dir               as of skiff join (default: /var/lib/kubelet)
      --dry-run                print what would be done

A kubelet or a control plane that a unit of systemd runs is stopped; one in the foreground must be ended first. What stays: network plugins and their
configuration, rules of the packet filter, images, logs of containers, and an etcd on this machine.
`

/** One thing to do, in the order of the list. */
interface Step {
  readonly title: string
  /** @returns what is to be said instead of the title */
  run(): Promise<string | undefined>
}

const clock = createRealClock()
const exec = createExec()

/** Resolves with the exit code. */
export async function runLeave(args: readonly string[], signal: AbortSignal): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help)
    return exitCodes.ok
  }
  try {
    const options = readLeaveOptions(args)
    const parts = await joinedParts(options)
    const steps = [...stepsInCluster(options, parts, signal), ...stepsOnMachine(options, parts)]
    if (options.dryRun) {
      process.stdout.write(steps.map(({ title }) => `${printable(title)}\n`).join(''))
      return exitCodes.ok
    }
    if (process.getuid?.() !== 0) throw new CommandError('unmetPrerequisite', 'skiff leave needs root: the files of the join are for root alone')
    for (const { title, run } of steps) {
      signal.throwIfAborted()
      done((await run()) ?? title)
    }
    return exitCodes.ok
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted
    if (!(error instanceof CommandError)) throw error
    const lines = [`error: ${error.message}`, ...error.details.map((line) => `  ${line}`), ...(error.hint ? [`hint: ${error.hint}`] : [])]
    process.stderr.write(lines.map((line) => `${printable(line)}\n`).join(''))
    return exitCodes[error.exit]
  }
}

function stepsInCluster(options: LeaveOptions, { node, controlPlane }: JoinedParts, signal: AbortSignal): Step[] {
  const steps: Step[] = []
  if (options.removesEtcdMember) {
    if (!controlPlane) throw new CommandError('usage', '--remove-etcd-member: this machine is no control plane')
    const run = () => withPlannedEtcd(controlPlane, async (etcd) => `Member ${await removeOwnMember(clock, etcd, ownAddresses())} is taken out of etcd`)
    steps.push({ title: 'Take the member of etcd on this machine out', run: () => run().catch(asCommandError('etcd')) })
  } else if (controlPlane) {
    steps.push({
      title: 'Look for a member of etcd on this machine',
      run: () =>
        withPlannedEtcd(controlPlane, async (etcd) => {
          const own = memberAt(await etcd.members(), ownAddresses())
          return own ? `Member ${own.name} of etcd runs on this machine, and stays` : 'No member of etcd runs on this machine'
        }).catch((error: unknown) => `etcd does not say whether a member runs on this machine: ${messageOf(error)}`),
    })
  }
  const name = node?.name
  if (options.drains) {
    if (name === undefined) throw new CommandError('usage', '--drain: this machine is no node of the cluster')
    const drain = (client: Client) => drainNode(client, clock, name, options.drainTimeoutMs, signal)
    const run = () => withCluster(options, node?.kubeconfig ?? '', controlPlane !== undefined, drain)
    steps.push({
      title: `Drain node ${name}`,
      run: async () => `Node ${name} is drained: ${await run().catch(asCommandError('the cluster'))} pods were evicted`,
    })
  }
  steps.push({ title: 'Stop what runs here', run: () => stopRunning(options, { node, controlPlane }) })
  if (name !== undefined && !options.keepsNode) {
    const remove = (client: Client) => deleteNode(client, name, signal)
    const run = () => withCluster(options, node?.kubeconfig ?? '', controlPlane !== undefined, remove)
    steps.push({ title: `Delete the Node object ${name}`, run: () => run().catch((error: unknown) => nodeStays(name, error)) })
  }
  return steps
}

function stepsOnMachine({ configDir, rootDir, criSocket, files }: LeaveOptions, { node, controlPlane }: JoinedParts): Step[] {
  const pki = path.join(configDir, 'pki')
  const steps: Step[] = []
  if (node) {
    const removePods = async () => {
      const socket = criSocket ?? (await runtimeSocket(node.config))
      const count = await removeSandboxes(socket).catch(asCommandError(`the container runtime at ${socket}`))
      return count === undefined ? `There is no container runtime at ${socket}` : `${count} pods are removed from the container runtime at ${socket}`
    }
    steps.push({ title: 'Remove the pods of the container runtime', run: removePods })
    steps.push({ title: `Unmount and remove ${rootDir}`, run: () => removeMounted(rootDir, createMounter(exec)).then(() => `${rootDir} is removed`) })
  }
  const ofNode = node ? [node.kubeconfig, node.bootstrap, node.ca] : []
  const ofControlPlane = controlPlane ? [files.admin, files.controllerManager, files.scheduler, files.plan] : []
  const removeAll = async () => {
    // The keys of the cluster first: what has them can do everything.
    if (controlPlane) await fs.rm(pki, { recursive: true, force: true })
    await removeFiles([...ofNode, ...ofControlPlane], [pki, configDir])
    return `Removed: ${[...(controlPlane ? [pki] : []), ...ofNode, ...ofControlPlane].join(', ')}`
  }
  return [...steps, { title: `Remove ${[...(controlPlane ? [pki] : []), ...ofNode, ...ofControlPlane].join(', ')}`, run: removeAll }]
}

/** @throws CommandError conflict when something still runs */
async function stopRunning({ rootDir, configDir }: LeaveOptions, { node, controlPlane }: JoinedParts): Promise<string> {
  const stopped: string[] = []
  for (const [unit, isHere] of [
    ['skiff-kubelet.service', node],
    ['skiff-control-plane.service', controlPlane],
  ] as const)
    if (isHere && (await removeUnit({ exec }, unit, true).catch(asCommandError(unit)))) stopped.push(unit)
  if (node && (await isListening({ path: path.join(rootDir, 'pod-resources/kubelet.sock') }))) {
    throw new CommandError('conflict', `the kubelet of ${rootDir} runs`, {
      hint: 'end it (skiff join, or skiff kubelet), and run skiff leave again without --drain',
    })
  }
  if (controlPlane && (await isListening({ host: '127.0.0.1', port: controlPlane.port }))) {
    throw new CommandError('conflict', `the control plane of ${configDir} runs: its port ${controlPlane.port} is in use`, {
      hint: 'end skiff join --control-plane, and run skiff leave again',
    })
  }
  return stopped.length === 0 ? 'Nothing of it runs' : `Stopped and removed: ${stopped.join(', ')}`
}

/** With the rights of the named kubeconfig, else of the administrator where the machine has that, else of the kubelet. */
async function withCluster<T>(options: LeaveOptions, ofKubelet: string, isControlPlane: boolean, use: (client: Client) => Promise<T>): Promise<T> {
  const file = options.kubeconfig ?? (isControlPlane ? options.files.admin : ofKubelet)
  const access = await openAccess(file, '', { clock, metrics: noMetrics })
  try {
    return await use(access.client('skiff leave', { requestTimeoutMs: askMs }))
  } finally {
    await access.close()
  }
}

async function deleteNode(client: Client, name: string, signal: AbortSignal): Promise<string> {
  using limit = deadlineScope({ clock, ms: askMs }, signal)
  await client.of(nodes).delete({ name }, { signal: limit.signal })
  return `Node ${name} is deleted`
}

/** A machine whose cluster is gone, or does not let it, leaves all the same. */
function nodeStays(name: string, error: unknown): string {
  if (isStatus(error, 'NotFound')) return `Node ${name} was deleted before`
  const why = isStatus(error, 'Forbidden') ? 'this machine may not delete it' : messageOf(error)
  return `Node ${name} stays in the cluster, ${why}: kubectl delete node ${name}`
}

function asCommandError(what: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof CommandError) throw error
    throw new CommandError('internal', `${what}: ${messageOf(error)}`, { hint: 'skiff leave can be run again', cause: error })
  }
}
