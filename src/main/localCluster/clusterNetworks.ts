/**
 * The networks of the local clusters of this host (L5): a new cluster claims ranges that no other cluster and nothing else on the host uses, and `up` makes
 * what is missing of its cluster's network.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'
import { CommandError } from '#cli/exitCodes'
import type { Exec } from '#host/exec'
import { withLockFile } from '#host/lockFile'
import {
  type ClusterNetwork,
  controlNetwork,
  ensureBridge,
  ensureBridgeAddress,
  ensureControlNetwork,
  removeBridge,
  removeNodeNetwork,
} from '../vnode/clusterNetwork.ts'
import { bridgeAlias, rangesOfCluster, rangesOfHost } from '../vnode/hostRanges.ts'
import {
  type AskedRanges,
  type ClusterRanges,
  chooseRanges,
  familiesOf,
  type NetworkRanges,
  overlapping,
  RangeRefused,
  type TakenRange,
} from '../vnode/ranges.ts'
import { addressPlanOf } from './addressPlan.ts'
import { type ClusterState, clusterPaths, readState } from './clusterState.ts'
import { advertisedAddressOf, isReplicated, serversOf } from './controlPlanes.ts'

export interface NetworkDeps {
  readonly clock: Clock
  readonly exec: Exec
  readonly home: string
}

/** Held while a cluster of any home chooses its ranges; gone at the next boot. */
const lockFile = '/run/skiff-network.lock'
const lockTimeoutMs = 60_000

/** The ranges of a cluster whose addresses nothing on the host uses. @throws CommandError usage for a range that cannot be */
export function rangesWithoutNetwork(id: string, asked: AskedRanges): ClusterRanges {
  const { clusterCidr, serviceCidr } = choose(id, asked, [])
  return { clusterCidr, serviceCidr }
}

/**
 * Chooses the ranges of a cluster with real nodes and makes its bridge, which shows them to other clusters.
 * @param keep writes the cluster's state, before anything is made
 * @throws CommandError usage or conflict for a range that the user named, with the interface, route or cluster that has it
 */
export async function claimNetwork(
  deps: NetworkDeps,
  { name, id, asked }: { readonly name: string; readonly id: string; readonly asked: AskedRanges },
  keep: (network: ClusterNetwork, ranges: ClusterRanges) => Promise<void>,
): Promise<void> {
  const options = {
    clock: deps.clock,
    timeoutMs: lockTimeoutMs,
    refuse: () => new CommandError('conflict', `another command chooses the ranges of a cluster and does not end; if none runs, remove ${lockFile}`),
  }
  await withLockFile(lockFile, options, async () => {
    const bridge = `skiff-${id}`
    const taken = [...(await rangesOfHost(deps.exec, bridge)), ...(await rangesOfClusters(deps.home, name))]
    const { prefix, prefixIpv6, ...ranges } = choose(id, asked, taken)
    const isIpv6Only = familiesOf(ranges.clusterCidr) === 'ipv6'
    const network = { bridge, prefix, ...(prefixIpv6 ? { prefixIpv6 } : {}), ...(isIpv6Only ? { isIpv6Only } : {}) }
    await keep(network, ranges)
    await ensureBridge(deps.exec, network, bridgeAlias(name, ranges))
  })
}

function choose(id: string, asked: AskedRanges, taken: readonly TakenRange[]): NetworkRanges {
  try {
    return chooseRanges(id, asked, taken)
  } catch (error) {
    if (!(error instanceof RangeRefused)) throw error
    const hint = error.isClash ? { hint: 'name another range, or leave the flag out: a free one is chosen' } : {}
    throw new CommandError(error.isClash ? 'conflict' : 'usage', error.message, { ...hint, cause: error })
  }
}

/** Ranges of the other clusters with real nodes in the same home. A cluster that does not run may have no bridge to read them from. */
async function rangesOfClusters(home: string, except: string): Promise<TakenRange[]> {
  const names = await fs.readdir(path.join(home, 'clusters')).catch(() => [] as string[])
  const states = await Promise.all(names.filter((name) => name !== except).map((name) => readState(clusterPaths(home, name)).catch(() => undefined)))
  return states.flatMap((state) => {
    if (!state?.network) return []
    const { prefix, prefixIpv6 } = state.network
    const nodes = [`${prefix}.0/24`, ...(prefixIpv6 ? [`${prefixIpv6}::/64`] : [])]
    return [...nodes.map((cidr) => ({ cidr, by: `the nodes of cluster "${state.name}"` })), ...rangesOfCluster(state.name, addressPlanOf(state))]
  })
}

/**
 * Makes what is missing of a cluster's network: all of it after the host was started again.
 * @throws CommandError conflict when the host has come to use the nodes' range meanwhile
 */
export async function ensureClusterNetwork({ exec }: NetworkDeps, state: ClusterState): Promise<void> {
  const { network, id, name } = state
  if (!network) return
  const clash = overlapping(`${network.prefix}.0/24`, await rangesOfHost(exec, network.bridge))
  if (clash) {
    throw new CommandError('conflict', `the nodes' range ${network.prefix}.0/24 of cluster "${name}" overlaps ${clash.cidr} of ${clash.by}`, {
      hint: `remove that, or delete the cluster and make it again: skiff delete ${name}`,
    })
  }
  await ensureBridge(exec, network, bridgeAlias(name, addressPlanOf(state)))
  for (const { name: server } of isReplicated(state) ? serversOf(state) : []) await ensureBridgeAddress(exec, network, advertisedAddressOf(state, server) ?? '')
  await ensureControlNetwork(exec, network, controlNetwork(network, id))
}

/** After the nodes are removed. Nothing to remove is fine. */
export async function removeClusterNetwork({ exec }: NetworkDeps, { network, id }: ClusterState): Promise<void> {
  if (!network) return
  await removeNodeNetwork(exec, controlNetwork(network, id))
  await removeBridge(exec, network)
}
