/**
 * The host path drivers of a local cluster's nodes, and their controllers (L5). A real node runs its driver as a process in its namespaces, which registers with
 * the node's kubelet. A simulated node has a driver in this process without content, and is registered from here, as its kubelet watches no directory.
 */
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { type AbortScope, abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { WakeUp } from '#base/wakeUp'
import { poll } from '#client/waitFor'
import { defaultCsiControllerOptions } from '#csi/controllers/context'
import { type CsiControllersDeps, runCsiControllers } from '#csi/controllers/csiControllers'
import { type CsiConnection, connectCsi } from '#csi/controllers/driver'
import { connectInProcess } from '#csi/controllers/inProcess'
import { joinNodeDrivers, type NodeDriver } from '#csi/controllers/nodeDrivers'
import { topologyKey } from '#csi/hostpath/controller'
import { hostPathDriverName as driver, simulatedHostPathDriver } from '#csi/hostpath/driver'
import { openState, type StateFile } from '#csi/hostpath/state'
import { GrpcError } from '#grpc/grpcError'
import { installDriver, uninstallDriver } from '#kubelet/volumes/csi/driverInstallation'
import { type ClusterPaths, type ClusterState, readState } from '../../localCluster/clusterState.ts'
import { simulatedNodesOf } from '../../localCluster/simulatedPlan.ts'
import { nodePaths } from '../../vnode/files.ts'
import { vnodeProcess } from '../../vnode/vnode.ts'
import { type NodeProgram, runNodeProgram } from '../nodeProgram.ts'
import type { CsiHostPathOptions } from './csiHostPathOptions.ts'

/** Below a kubelet's directory. */
const ownDirectory = `plugins/${driver}`
const onNode = `${nodePaths.kubelet}/${ownDirectory}`
const socket = `${onNode}/csi.sock`

const programOf = (nodeName: string): NodeProgram => ({
  role: 'csi',
  word: 'csi-hostpath',
  args: [
    ...['part', 'csi-hostpath', '--endpoint', `unix://${socket}`, '--node-id', nodeName, '--state-dir', `${onNode}/state`],
    ...['--plugin-registration-path', `${nodePaths.kubelet}/plugins_registry`],
  ],
  graceMs: 5000,
})

/** @param changes rung when the simulated nodes may be others */
export async function runCsiHostPathProcesses(options: CsiHostPathOptions, changes: WakeUp, signal: AbortSignal): Promise<void> {
  const { state, paths, tools, controllerClient } = options
  const drivers: NodeDriver[] = state.nodes.map(({ name }) => ({ nodeId: name, connection: connectToNode(paths.node(name)) }))
  const simulated = simulatedDrivers(options, drivers)
  const names = await simulated.open()
  using scope = abortScope(signal)
  const work = [
    ...state.nodes.map((node) => runNodeProgram(options, node, programOf(node.name), scope.signal)),
    simulated.follow(names, changes, scope.signal),
    runHostPathControllers({ ...tools, log: tools.log.with('csi-hostpath'), client: controllerClient }, drivers, scope.signal),
  ]
  try {
    await Promise.all(work)
  } finally {
    scope.abort()
    await Promise.allSettled(work)
  }
}

/** Gives `drivers` one for each simulated node. That of a removed node stays, as its volumes may still be deleted. */
function simulatedDrivers({ state, paths, tools, client }: CsiHostPathOptions, drivers: NodeDriver[]) {
  const opened = new Set<string>()
  const registering = new Map<string, AbortScope>()
  const open = async (): Promise<ReadonlySet<string>> => {
    const names = new Set(simulatedNodesOf((await readState(paths)) ?? state).map(({ name }) => name))
    const add = async (name: string) => {
      drivers.push(simulatedNodeDriver(name, await openState(simulatedDirectory(paths, name)), tools.clock))
      opened.add(name)
    }
    await Promise.all([...names].filter((name) => !opened.has(name)).map(add))
    return names
  }
  const follow = async (first: ReadonlySet<string>, changes: WakeUp, signal: AbortSignal): Promise<void> => {
    const work: Promise<void>[] = []
    for (let names = first; !signal.aborted; names = await open()) {
      for (const [name, scope] of registering) {
        if (names.has(name)) continue
        scope.abort()
        registering.delete(name)
      }
      for (const name of names) {
        if (registering.has(name)) continue
        const scope = abortScope(signal)
        registering.set(name, scope)
        work.push(register({ ...tools, client }, [name], scope.signal))
      }
      await changes.wait(signal)
    }
    await Promise.all(work)
  }
  return { open, follow }
}

/** One program is the controller of all nodes: it holds no Lease, as the server that runs it is the leader. */
export function runHostPathControllers(deps: CsiControllersDeps, drivers: readonly NodeDriver[], signal: AbortSignal): Promise<void> {
  const capacity = { namespace: 'kube-system', pollMs: 60_000, isForImmediate: true }
  const options = { ...defaultCsiControllerOptions, identity: 'skiff', capacity }
  const joined = joinNodeDrivers(drivers, { topologyKey, name: driver, monotonicMs: () => deps.clock.monotonicMs() })
  return runCsiControllers(deps, { connection: joined, options }, signal)
}

/** Larger than any claim: no disk is behind it. */
const simulatedBytes = 2 ** 50

export function simulatedNodeDriver(nodeId: string, file: StateFile, clock: Clock): NodeDriver {
  const simulated = simulatedHostPathDriver({ nodeId, file, now: () => clock.now(), capacityBytes: simulatedBytes })
  return { nodeId, connection: connectInProcess(simulated, clock) }
}

const simulatedDirectory = (paths: ClusterPaths, name: string) => path.join(paths.dir, 'csi-hostpath', name)
const retryMs = 500

type RegistrationDeps = Omit<Parameters<typeof installDriver>[0], 'config'> & Pick<CsiControllersDeps, 'log'>

/** Resolves when the driver is on all these nodes. */
export async function register(deps: RegistrationDeps, nodeNames: readonly string[], signal: AbortSignal): Promise<void> {
  await Promise.all(
    nodeNames.map((nodeName) => {
      const info = { nodeId: nodeName, maxVolumesPerNode: 0, topology: { [topologyKey]: nodeName } }
      // A node may not have been registered itself yet.
      const install = async () => {
        try {
          await installDriver({ ...deps, config: { nodeName } }, driver, info, signal)
          return true
        } catch (error) {
          signal.throwIfAborted()
          deps.log.v(2).info('A driver is not registered', { node: nodeName, error: messageOf(error) })
          return undefined
        }
      }
      return poll(deps.clock, retryMs, install, signal)
    }),
  ).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

export async function unregister(deps: RegistrationDeps, nodeNames: readonly string[], signal: AbortSignal): Promise<void> {
  await Promise.all(nodeNames.map((nodeName) => uninstallDriver({ ...deps, config: { nodeName } }, driver, signal)))
}

/** The directories of drivers that have ended. No volume is in them: the command that turns the driver off has made sure. */
export async function removeVolumes(paths: ClusterPaths, state: ClusterState): Promise<void> {
  const directories = [...state.nodes.map(({ name }) => path.join(paths.node(name), 'kubelet', ownDirectory)), path.join(paths.dir, 'csi-hostpath')]
  for (const directory of directories) await rm(directory, { recursive: true, force: true })
}

/** Follows a node that crashes and starts again. */
function connectToNode(dir: string): CsiConnection {
  let current: { readonly pid: number; readonly connection: CsiConnection } | undefined
  const connection = async () => {
    const init = await vnodeProcess(dir)
    if (!init) throw new GrpcError('UNAVAILABLE', 'the node does not run').inGoWords()
    if (current?.pid !== init.pid) {
      current?.connection.close()
      // A socket's path is short. That of the cluster's directory may not be.
      current = { pid: init.pid, connection: connectCsi(`/proc/${init.pid}/root${socket}`) }
    }
    return current.connection
  }
  return {
    call: (...args) => connection().then((current) => current.call(...args)),
    identity: (...args) => connection().then((current) => current.identity(...args)),
    nodeCapabilities: (...args) => connection().then((current) => current.nodeCapabilities(...args)),
    close: () => current?.connection.close(),
  }
}
