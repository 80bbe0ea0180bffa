/**
 * The pod network of one node (L3): writes the CNI configuration once the node has its pod CIDRs and checks the sources of its pods' packets, keeps routes to
 * the pods of the other nodes, and gives connections of pods that leave the cluster the node's address. containerd reports the network ready as soon as the
 * configuration is there. Upstream's counterpart: a CNI daemon such as kindnet.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { NodeRoutes } from '#api/debug/nodeNetwork'
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { aborted } from '#base/orAborted'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import type { EventRecorder } from '#client/eventRecorder'
import { check, type Exec } from '#host/exec'
import { makeDirectory, writeFileAtomic } from '#host/files'
import { createNftTable } from '#host/nftables'
import type { InstalledPlugins } from './cni/install.ts'
import { recordedNetwork } from './cni/recorder.ts'
import { masqueradeOf } from './masquerade.ts'
import { createNodeRoutes, type NodeRoutesDeps } from './nodeRoutes.ts'
import { cniConfig, podCidrsOf, podRoutes } from './podNetwork.ts'
import { routeModes } from './routes/index.ts'
import { familyFlagOf } from './routes/keepRoutes.ts'
import { type KernelNeighbour, type KernelRoute, nodeNeighbours, nodeRoutes } from './shownRoutes.ts'
import { sourceCheck, sourceCheckTable } from './sourceCheck.ts'

export interface NetworkAgentDeps extends NodeRoutesDeps {
  /** Tells what the node cannot do for its pods; absent: only the log does. */
  readonly events?: EventRecorder | undefined
}

export interface NetworkAgentConfig {
  readonly nodeName: string
  readonly cniConfigDir: string
  /** Puts Skiff's own plugins where there are no others. Absent: the reference plugins are there, but for that of bandwidth. */
  readonly installPlugins?: (() => Promise<InstalledPlugins>) | undefined
  /** Puts plugins that record the calls of this network where the runtime looks for plugins; absent: calls are not recorded. */
  readonly installRecorder?: ((network: Readonly<Record<string, unknown>>) => Promise<void>) | undefined
  /** The range of all pods, or one of each family with a comma between. */
  readonly clusterCidr: string
  /** The name of a route mode; absent: the first. `none`: another CNI plugin makes the pod network, and the agent changes nothing. */
  readonly routeMode?: string | undefined
}

/** The runtime takes the first file of the directory: that of another CNI plugin goes before ours. */
const configFile = '99-skiff.conflist'
/** The name of an earlier version. */
const formerConfigFile = '10-skiff.conflist'
const tableName = 'skiff-masquerade'
const families = ['ip', 'ip6'] as const
const retryMs = 1000

/** The mode that leaves the pod network to another program. */
export const noPodNetwork = 'none'

export interface NetworkAgent extends Component {
  /** What the kernel has of the pod network now. */
  routes(): Promise<NodeRoutes>
}

export function createNetworkAgent(deps: NetworkAgentDeps, config: NetworkAgentConfig): NetworkAgent {
  const { nodeName, routeMode: mode } = config
  if (mode === noPodNetwork) return withoutPodNetwork(deps, config)
  const routes = createNodeRoutes(deps, { mode, nodeName, routesTo: (list) => podRoutes(list, nodeName) })
  return {
    name: 'network-agent',
    routes: () => readRoutes(deps, config),
    run: async (signal) => {
      await Promise.all([
        onNodeChanges(deps, nodeName, cniWriter(deps, config), signal),
        onNodeChanges(deps, nodeName, masquerader(deps, config), signal),
        routes.run(signal),
      ])
    },
  }
}

/** Removes what an agent with another mode left: nothing for a node that never had one. */
function withoutPodNetwork(deps: NetworkAgentDeps, { cniConfigDir }: NetworkAgentConfig): NetworkAgent {
  const { exec, log, modes = routeModes } = deps
  return {
    name: 'network-agent',
    routes: async () => ({ note: 'another CNI plugin makes the pod network' }),
    run: async (signal) => {
      for (const file of [configFile, formerConfigFile]) await fs.rm(path.join(cniConfigDir, file), { force: true })
      for (const mode of modes) await mode.cleanUp(exec)
      const tables = [...families.map((family) => createNftTable(exec, family, tableName)), createNftTable(exec, 'inet', sourceCheckTable)]
      // A kernel without IPv6 has no tables of it.
      for (const table of tables) await table.remove().catch((error) => log.v(2).info('Failed to remove a table', { reason: messageOf(error) }))
      await aborted(signal)
    },
  }
}

/** Brings a part of the host in step with the nodes. */
type Keep = (own: Frozen<Node>, all: readonly Frozen<Node>[]) => Promise<void>

/** Calls `keep` after each change of a node, once the own node exists, and again after a failure. */
async function onNodeChanges({ informers, log, clock }: NetworkAgentDeps, nodeName: string, keep: Keep, signal: AbortSignal): Promise<void> {
  const informer = informers.of(nodes)
  const changes = createWakeUp()
  const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  try {
    await informer.synced(signal)
    while (!signal.aborted) {
      await changes.wait(signal)
      const own = informer.lister.get({ name: nodeName })
      if (signal.aborted || !own) continue
      try {
        await keep(own, informer.store.list())
      } catch (error) {
        log.error(error, 'Failed to set up the pod network')
        await clock.sleep(retryMs, signal)
        changes.ring()
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
  }
}

/** Writes the file when the pod CIDRs are known and differ from those written before, and the kernel checks the sources of packets. */
function cniWriter(deps: NetworkAgentDeps, { cniConfigDir, routeMode, installPlugins, installRecorder }: NetworkAgentConfig): Keep {
  const { exec, log, modes = routeModes } = deps
  const mtu = modes.find(({ name }) => name === routeMode)?.podMtu
  const table = createNftTable(exec, 'inet', sourceCheckTable)
  let written = ''
  return async (own) => {
    const podCidrs = podCidrsOf(own)
    if (podCidrs.length === 0 || podCidrs.join() === written) return
    await table.apply(sourceCheck)
    const installed = await installPlugins?.()
    const limitsBandwidth = installed !== undefined && (await canLimitBandwidth(deps, installed, own))
    const network = cniConfig(podCidrs, { mtu, isOwn: installed?.isOwn, limitsBandwidth })
    const isRecorded = installRecorder !== undefined && (await succeeds(log, () => installRecorder(network)))
    await makeDirectory(cniConfigDir)
    await writeFileAtomic(path.join(cniConfigDir, configFile), `${JSON.stringify(isRecorded ? recordedNetwork(network) : network, null, 2)}\n`)
    await fs.rm(path.join(cniConfigDir, formerConfigFile), { force: true })
    written = podCidrs.join()
  }
}

/** Where it cannot, the node has an Event, and pods start without limits. */
async function canLimitBandwidth({ exec, log, events }: NetworkAgentDeps, { hasBandwidth }: InstalledPlugins, own: Frozen<Node>): Promise<boolean> {
  // Needed once, at the start of a node.
  const { bandwidthObstacle } = await import('./cni/bandwidth.ts')
  const obstacle = hasBandwidth ? await bandwidthObstacle(exec) : 'the CNI plugin bandwidth is not installed'
  if (obstacle === undefined) return true
  const message = `Pods of this node have no limits of bandwidth, whatever their annotations kubernetes.io/ingress-bandwidth and egress-bandwidth: ${obstacle}`
  log.warn('The bandwidth of pods is not limited', { reason: obstacle })
  events?.event(own, 'Warning', 'BandwidthNotLimited', message)
  return false
}

/** Pods get their network also where calls cannot be recorded. */
async function succeeds(log: NetworkAgentDeps['log'], install: () => Promise<void>): Promise<boolean> {
  try {
    await install()
    return true
  } catch (error) {
    log.error(error, 'Calls of CNI plugins are not recorded')
    return false
  }
}

function masquerader({ exec }: NetworkAgentDeps, { clusterCidr }: NetworkAgentConfig): Keep {
  const tables = { ip: createNftTable(exec, 'ip', tableName), ip6: createNftTable(exec, 'ip6', tableName) }
  return async (own, all) => {
    for (const { family, contents } of masqueradeOf(own, all, clusterCidr.split(','))) await tables[family].apply(contents)
  }
}

/** A table of the whole Internet is larger. */
const maxOutputBytes = 8 * 2 ** 20

async function readRoutes(
  { exec, informers, modes = routeModes }: NetworkAgentDeps,
  { nodeName, clusterCidr, routeMode }: NetworkAgentConfig,
): Promise<NodeRoutes> {
  const { lister, store } = informers.of(nodes)
  const own = lister.get({ name: nodeName })
  if (!own) return { note: 'the agent has not read the nodes yet' }
  const clusterCidrs = clusterCidr.split(',')
  const podCIDRs = podCidrsOf(own)
  const chosen = modes.find(({ name }) => name === routeMode) ?? modes[0]
  const wanted = podRoutes(store.list(), nodeName).map((route) => chosen?.asInKernel?.(route) ?? route)
  const [routes, neighbours] = await Promise.all([
    shown<KernelRoute>(exec, ['route', 'show', 'table', 'main'], podCIDRs),
    shown<KernelNeighbour>(exec, ['neighbour', 'show'], podCIDRs),
  ])
  return {
    mode: chosen?.name,
    podCIDRs,
    routes: nodeRoutes(routes, wanted, { clusterCidrs, podCidrs: podCIDRs }),
    neighbours: nodeNeighbours(
      neighbours,
      wanted.map(({ via }) => via),
      clusterCidrs,
    ),
  }
}

/** What `ip` shows of the families in which the node has pods. */
async function shown<T>(exec: Exec, words: readonly string[], podCidrs: readonly string[]): Promise<readonly T[]> {
  const flags = [...new Set(podCidrs.map(familyFlagOf))]
  const texts = await Promise.all(flags.map((family) => check(exec, 'ip', [family, '-json', ...words], { maxOutputBytes })))
  return texts.flatMap((text) => JSON.parse(text || '[]') as T[])
}
