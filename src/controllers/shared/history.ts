/**
 * The revisions of a workload's template, kept as ControllerRevisions for `kubectl rollout history` and `undo` (L3).
 * Upstream: pkg/controller/daemon/update.go, pkg/controller/statefulset, pkg/controller/history (v1.36).
 */

import type { ControllerRevision, DaemonSet, StatefulSet } from '#api/gen/types/apps.v1'
import { controllerReference } from '#api/helpers/owners'
import { podTemplateHash } from '#api/helpers/podTemplateHash'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { greatest } from '#base/extremes'
import { controllerRevisions } from '#client/builtIn'
import type { Client, NewObject, Resource } from '#client/client'
import type { ControllerContext } from '../framework/controller.ts'
import { claim } from './claim.ts'

const daemonHashLabel = 'controller-revision-hash'
const statefulHashLabel = 'controller.kubernetes.io/hash'

export interface History {
  readonly current: Frozen<ControllerRevision>
  readonly old: readonly Frozen<ControllerRevision>[]
  /** The status's collisionCount; undefined: no name was taken yet. */
  readonly collisionCount: number | undefined
}

type RevisedSet = Frozen<DaemonSet> | Frozen<StatefulSet>

export const revisionHash = (revision: Frozen<ControllerRevision>): string =>
  revision.metadata.labels?.[daemonHashLabel] ?? revision.metadata.labels?.[statefulHashLabel] ?? ''

/** Finds the revision of the present template, numbers it last, or makes it. */
export async function currentRevision(
  client: Client,
  set: RevisedSet,
  revisions: readonly Frozen<ControllerRevision>[],
  signal: AbortSignal,
): Promise<History> {
  const data = { spec: { template: { ...set.spec.template, $patch: 'replace' } } }
  const sameData = revisions.filter((revision) => semanticEqual(revision.data, data)).sort((a, b) => a.revision - b.revision)
  const same = sameData.at(-1)
  const old = revisions.filter((revision) => revision !== same)
  const last = greatest(
    old.map(({ revision }) => revision),
    0,
  )
  const { collisionCount } = set.status ?? {}
  if (!same) return { ...(await createRevision(client, set, { data: data as never, revision: last + 1 }, signal)), old }
  const number = last + 1
  const current =
    same.revision > last ? same : await client.of(controllerRevisions).update({ ...same, revision: number } as Frozen<ControllerRevision>, { signal })
  return { current, old, collisionCount }
}

/** Under a name that follows from the template; when another has it, the count of collisions makes another name. */
async function createRevision(client: Client, set: RevisedSet, content: Pick<ControllerRevision, 'data' | 'revision'>, signal: AbortSignal) {
  const { namespace, name, annotations } = set.metadata
  const of = client.of(controllerRevisions)
  // A StatefulSet counts from 0, a DaemonSet has no count before the first collision; names follow from it.
  for (let collisionCount = set.status?.collisionCount ?? (set.kind === 'StatefulSet' ? 0 : undefined); ; collisionCount = (collisionCount ?? 0) + 1) {
    const hash = podTemplateHash(set.spec.template, collisionCount)
    const made: NewObject<ControllerRevision> = {
      metadata: {
        namespace,
        name: `${name}-${hash}`,
        labels: { ...set.spec.template.metadata?.labels, [set.kind === 'StatefulSet' ? statefulHashLabel : daemonHashLabel]: hash },
        ...(annotations ? { annotations: { ...annotations } } : {}),
        ownerReferences: [controllerReference(set)],
      },
      ...content,
    }
    try {
      return { current: await of.create(made, { signal }), collisionCount }
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) throw error
      // Ours, which the cache has not shown yet; or a stranger with the same hash.
      const there = await of.get({ namespace, name: made.metadata.name ?? '' }, { signal })
      if (semanticEqual(there.data, content.data)) return { current: there, collisionCount }
    }
  }
}

/** Revisions that the set owns, after adopting those that only its selector names, left by a set of its name that went without them. */
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
