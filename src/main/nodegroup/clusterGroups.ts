/** The node groups of a local cluster, as the server for an autoscaler reads and changes them (L5). */
import fs from 'node:fs/promises'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { isMissing } from '#host/files'
import type { ApiProbe } from '../localCluster/apiProbe.ts'
import { askCluster } from '../localCluster/askCluster.ts'
import type { Change } from '../localCluster/changeNodes.ts'
import { exclusively } from '../localCluster/clusterLock.ts'
import { type ClusterPaths, type ClusterState, clusterPaths, readState } from '../localCluster/clusterState.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { nodeGroupLabel } from '../localCluster/simulatedPlan.ts'

export interface ClusterGroups {
  /** The cluster's description as it is now; the same object until it changes. @throws CommandError notFound when the cluster was deleted */
  state(): Promise<ClusterState>
  /** The names of a group's Nodes that exist. @throws CommandError unmetPrerequisite when the cluster does not answer */
  registered(group: string): Promise<ReadonlySet<string>>
  /** Makes a change while no command changes the cluster. @throws CommandError conflict when one does for long */
  change<T>(act: (change: Change, probe: ApiProbe) => Promise<T>): Promise<T>
}

/** An autoscaler waits five seconds for an answer. */
const lockMs = 4_000
const silent: Progress = { step: (_title, work) => work(() => {}), note: () => {} }

export function createClusterGroups(deps: LocalClusterDeps, name: string): ClusterGroups {
  const paths = clusterPaths(deps.home, name)
  const state = followState(paths, name)
  return {
    state,
    registered: async (group) => {
      const now = await state()
      return askCluster(deps, paths, now, (probe) => registeredNodes(probe, now, group))
    },
    change: (act) =>
      exclusively(
        deps,
        name,
        undefined,
        async () => {
          const now = await state()
          return askCluster(deps, paths, now, (probe) => act({ paths, state: now, progress: silent }, probe))
        },
        { timeoutMs: lockMs },
      ),
  }
}

const nodesPerPage = 500

interface NodePage {
  readonly metadata: { readonly continue?: string }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

/** The names of a group's Nodes that exist. @throws CommandError unmetPrerequisite when the cluster does not answer */
export async function registeredNodes(probe: ApiProbe, { name: cluster }: ClusterState, group: string): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  const selector = encodeURIComponent(`${nodeGroupLabel}=${group}`)
  let from = ''
  do {
    const answer = await probe.get(`/api/v1/nodes?labelSelector=${selector}&limit=${nodesPerPage}${from}`)
    if (answer?.status !== 200) throw new CommandError('unmetPrerequisite', `cluster "${cluster}" does not answer`)
    const { items, metadata } = JSON.parse(answer.body) as NodePage
    for (const node of items) names.add(node.metadata.name)
    from = metadata.continue ? `&continue=${encodeURIComponent(metadata.continue)}` : ''
  } while (from !== '')
  return names
}

/** An autoscaler asks for the group of each node in turn: the file is read again only when it was written. */
function followState(paths: ClusterPaths, name: string): () => Promise<ClusterState> {
  let known: { readonly stamp: string; readonly state: ClusterState } | undefined
  return async () => {
    const stamp = await stampOf(paths.state)
    if (known?.stamp === stamp) return known.state
    const state = await readState(paths)
    if (!state) throw new CommandError('notFound', `there is no cluster "${name}"`)
    known = { stamp, state }
    return state
  }
}

/** Differs between two versions of the file, which is replaced as a whole. */
async function stampOf(file: string): Promise<string> {
  try {
    const { ino, mtimeNs, size } = await fs.stat(file, { bigint: true })
    return `${ino} ${mtimeNs} ${size}`
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}
