/**
 * The revisions of a workload's template, kept as ControllerRevisions for `kubectl rollout history` and `undo` (L3).
 * Upstream: pkg/controller/daemon/update.go, pkg/controller/statefulset, pkg/controller/history (v1.36).
 */
import type { ControllerRevision, DaemonSet, StatefulSet } from '#api/gen/types/apps.v1'
import { controllerReference } from '#api/helpers/owners'
import { podTemplateHash } from '#api/helpers/podTemplateHash'
import { type RevisionData, revisionData, revisionDataHash } from '#api/helpers/revisionData'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { withNils } from '#api/schema/nils'
import { greatest } from '#base/extremes'
import { controllerRevisions } from '#client/builtIn'
import type { Client, NewObject, Resource } from '#client/client'
import type { ControllerContext } from '../framework/controller.ts'
import { claim } from './claim.ts'

const daemonHashLabel = 'controller-revision-hash'
const statefulHashLabel = 'controller.kubernetes.io/hash'
const maxNamePrefix = 223

export interface History {
  readonly current: Frozen<ControllerRevision>
  readonly old: readonly Frozen<ControllerRevision>[]
  /** The status's collisionCount; undefined: no name was taken yet. */
  readonly collisionCount: number | undefined
}

type RevisedSet = Frozen<DaemonSet> | Frozen<StatefulSet>

export const revisionHash = (revision: Frozen<ControllerRevision>): string =>
  revision.metadata.labels?.[daemonHashLabel] ?? revision.metadata.labels?.[statefulHashLabel] ?? ''

/** Returns the revision of the present template, with the highest number; creates it if it does not exist. */
export async function currentRevision(
  client: Client,
  set: RevisedSet,
  revisions: readonly Frozen<ControllerRevision>[],
  signal: AbortSignal,
): Promise<History> {
  const data = revisionData(withNils(set))
  const sameData = revisions.filter((revision) => semanticEqual(revision.data, data)).sort((a, b) => a.revision - b.revision)
  const same = sameData.at(-1)
  const old = revisions.filter((revision) => revision !== same)
  const last = greatest(
    old.map(({ revision }) => revision),
    0,
  )
  const { collisionCount } = set.status ?? {}
  if (!same) return { ...(await createRevision(client, set, { data, revision: last + 1 }, signal)), old }
  const number = last + 1
  const current =
    same.revision > last ? same : await client.of(controllerRevisions).update({ ...same, revision: number } as Frozen<ControllerRevision>, { signal })
  return { current, old, collisionCount }
}

interface RevisionContent {
  readonly data: RevisionData
  readonly revision: number
}

/** The name follows from the template. If another revision has the name, the count of collisions makes another one. */
async function createRevision(client: Client, set: RevisedSet, content: RevisionContent, signal: AbortSignal) {
  const { namespace, annotations } = set.metadata
  const of = client.of(controllerRevisions)
  // A StatefulSet counts from 0, a DaemonSet has no count before the first collision; names follow from it.
  const firstCount = set.status?.collisionCount ?? (isStateful(set) ? 0 : undefined)
  for (let collisionCount = firstCount; ; collisionCount = (collisionCount ?? 0) + 1) {
    const { name, labels } = nameOf(set, content.data, { collisionCount, firstCount })
    const made: NewObject<ControllerRevision> = {
      metadata: {
        namespace,
        name,
        labels,
        ...(annotations ? { annotations: { ...annotations } } : {}),
        ownerReferences: [controllerReference(set)],
      },
      revision: content.revision,
      data: content.data as never,
    }
    try {
      return { current: await of.create(made, { signal }), collisionCount }
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) throw error
      // Either this revision, which is not in the cache yet, or another one with the same hash.
      const there = await of.get({ namespace, name }, { signal })
      if (semanticEqual(there.data, content.data)) return { current: there, collisionCount }
    }
  }
}

interface Counts {
  readonly collisionCount: number | undefined
  readonly firstCount: number | undefined
}

/** Upstream hashes a DaemonSet's template but a StatefulSet's data, whose label keeps the hash of the first attempt. */
function nameOf(set: RevisedSet, data: RevisionData, { collisionCount, firstCount }: Counts): { name: string; labels: Record<string, string> } {
  const own = { ...set.spec.template.metadata?.labels }
  if (!isStateful(set)) {
    const hash = podTemplateHash(set.spec.template, collisionCount)
    return { name: `${set.metadata.name}-${hash}`, labels: { ...own, [daemonHashLabel]: hash } }
  }
  const name = `${set.metadata.name?.slice(0, maxNamePrefix)}-${revisionDataHash(data, collisionCount)}`
  return { name, labels: { ...own, [statefulHashLabel]: revisionDataHash(data, firstCount) } }
}

const isStateful = (set: RevisedSet): boolean => set.kind === 'StatefulSet'

/** Revisions that the set owns, after it adopted the matching ones that a deleted set left behind. */
export async function ownRevisions(
  context: Pick<ControllerContext, 'client'>,
  ownerResource: Resource<KubeObject>,
  set: RevisedSet,
  all: readonly Frozen<ControllerRevision>[],
  signal: AbortSignal,
): Promise<Frozen<ControllerRevision>[]> {
  return claim(all, { context, owner: set, ownerResource, resource: controllerRevisions, selector: selectorOf(set.spec.selector), signal })
}

/** Revisions beyond the limit that no pod has, oldest first. For a DaemonSet the revisions that pods use count too, as upstream. */
export function revisionsToClean(
  set: RevisedSet,
  { old }: Pick<History, 'old'>,
  isUsed: (revision: Frozen<ControllerRevision>) => boolean,
): Frozen<ControllerRevision>[] {
  const limit = set.spec.revisionHistoryLimit ?? 10
  const unused = old.filter((revision) => !isUsed(revision)).sort((a, b) => a.revision - b.revision)
  const counted = set.kind === 'StatefulSet' ? unused : old
  return unused.slice(0, Math.max(0, counted.length - limit))
}
