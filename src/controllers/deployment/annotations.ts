/**
 * The annotations that carry a Deployment's history on its ReplicaSets (L3). Pure.
 * Upstream: pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations (v1.36).
 */
import type { Deployment, ReplicaSet } from '#api/gen/types/apps.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { traceAnnotation } from '#base/traceContext'
import { desiredReplicasAnnotation, maxReplicasAnnotation, maxSurge, parseRevision, replicasOf, revisionAnnotation, revisionHistoryAnnotation } from './plan.ts'

type Annotations = Readonly<Record<string, string>>

const notCopied = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  'deprecated.deployment.rollback.to',
  // A set is marked by the request that writes it.
  traceAnnotation,
])
const maxHistoryChars = 2000

/** Annotations of the sets about the deployment's size. */
export function sizeAnnotations(deployment: Frozen<Deployment>): Annotations {
  const wanted = replicasOf(deployment)
  return { [desiredReplicasAnnotation]: String(wanted), [maxReplicasAnnotation]: String(wanted + maxSurge(deployment)) }
}

/** The new set's annotations at `revision`; the set is absent when it is about to be created. */
export function newSetAnnotations(deployment: Frozen<Deployment>, set: Frozen<ReplicaSet> | undefined, revision: bigint): Record<string, string> {
  const annotations: Record<string, string> = bareMap({ ...set?.metadata.annotations })
  for (const [name, value] of Object.entries(deployment.metadata.annotations ?? {})) if (!notCopied.has(name)) annotations[name] = value
  const before = annotations[revisionAnnotation]
  // A revision that is no number is left alone, as upstream.
  const current = before ? parseRevision(before) : 0n
  if (current !== undefined && current < revision) {
    annotations[revisionAnnotation] = String(revision)
    // A set that returns (rollback) remembers the revisions it has been.
    if (before !== undefined) annotations[revisionHistoryAnnotation] = lengthen(annotations[revisionHistoryAnnotation], before)
  }
  return set ? { ...annotations } : { ...annotations, ...sizeAnnotations(deployment) }
}

function lengthen(history: string | undefined, revision: string): string {
  if (!history) return revision
  const all = [...history.split(','), revision]
  while (all.join(',').length > maxHistoryChars) all.shift()
  return all.join(',')
}
