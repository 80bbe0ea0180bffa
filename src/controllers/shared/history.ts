/**
 * The revisions of a workload's template, kept as ControllerRevisions for `kubectl rollout history` and `undo` (L3).
 * Upstream: pkg/controller/daemon/update.go, pkg/controller/statefulset, pkg/controller/history (v1.36).
 */
import type { ControllerRevision, DaemonSet, StatefulSet } from '#api/gen/types/apps.v1'
import { controllerReference } from '#api/helpers/owners'
import { podTemplateHash } from '#api/helpers/podTemplateHash'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { controllerRevisions } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'

const daemonHashLabel = 'controller-revision-hash'
const statefulHashLabel = 'controller.kubernetes.io/hash'

export interface History {
  readonly current: Frozen<ControllerRevision>
  readonly old: readonly Frozen<ControllerRevision>[]
}

export const revisionHash = (revision: Frozen<ControllerRevision>): string =>
  revision.metadata.labels?.[daemonHashLabel] ?? revision.metadata.labels?.[statefulHashLabel] ?? ''

/** Finds the revision of the present template, numbers it last, or makes it. */
export async function currentRevision(
  client: Client,
  set: Frozen<DaemonSet> | Frozen<StatefulSet>,
  revisions: readonly Frozen<ControllerRevision>[],
  signal: AbortSignal,
): Promise<History> {
  const data = { spec: { template: { ...set.spec.template, $patch: 'replace' } } }
  const same = revisions.find((revision) => semanticEqual(revision.data, data))
  const old = revisions.filter((revision) => revision !== same)
  const last = Math.max(0, ...old.map(({ revision }) => revision))
  const of = client.of(controllerRevisions)
  if (same) {
    const current = same.revision > last ? same : await of.update({ ...same, revision: last + 1 } as Frozen<ControllerRevision>, { signal })
    return { current, old }
  }
  const hash = podTemplateHash(set.spec.template, set.status?.collisionCount)
  const { namespace, name, annotations } = set.metadata
  const made: NewObject<ControllerRevision> = {
    metadata: {
      namespace,
      name: `${name}-${hash}`,
      labels: { ...set.spec.template.metadata?.labels, [set.kind === 'StatefulSet' ? statefulHashLabel : daemonHashLabel]: hash },
      ...(annotations ? { annotations: { ...annotations } } : {}),
      ownerReferences: [controllerReference(set)],
    },
    data: data as never,
    revision: last + 1,
  }
  try {
    return { current: await of.create(made, { signal }), old }
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
    // Ours, which the cache has not shown yet; another with the same hash is an error to be seen.
    const there = await of.get({ namespace, name: made.metadata.name ?? '' }, { signal })
    if (!semanticEqual(there.data, data)) throw error
    return { current: there, old }
  }
}

/** Revisions beyond the limit that no pod has, oldest first. */
export function revisionsToClean(
  set: Frozen<DaemonSet> | Frozen<StatefulSet>,
  { old }: History,
  isUsed: (revision: Frozen<ControllerRevision>) => boolean,
): Frozen<ControllerRevision>[] {
  const limit = set.spec.revisionHistoryLimit ?? 10
  const unused = old.filter((revision) => !isUsed(revision)).sort((a, b) => a.revision - b.revision)
  return unused.slice(0, Math.max(0, old.length - limit))
}
