/**
 * The arithmetic of Deployments (L3): which ReplicaSet is the new one, how large each may be, in which order old ones shrink. Pure.
 * Upstream: pkg/controller/deployment/util/deployment_util.go, rolling.go, sync.go (v1.36).
 */
import type { Deployment, ReplicaSet } from '#api/gen/types/apps.v1'
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { scaledValue } from '#api/machinery/intOrString'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { parseTime } from '#base/time'

export const revisionAnnotation = 'deployment.kubernetes.io/revision'
export const revisionHistoryAnnotation = 'deployment.kubernetes.io/revision-history'
export const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas'
export const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas'
export const podTemplateHashLabel = 'pod-template-hash'

/** replicas has 32 bits; with the surge the sum can need more. */
const maxReplicas = 2 ** 31 - 1

type Sets = readonly Frozen<ReplicaSet>[]

export const replicasOf = (object: { readonly spec: { readonly replicas?: number | undefined } }): number => object.spec.replicas ?? 1
export const totalReplicas = (sets: Sets): number => sets.reduce((sum, set) => sum + replicasOf(set), 0)
export const availableReplicas = (sets: Sets): number => sets.reduce((sum, set) => sum + (set.status?.availableReplicas ?? 0), 0)
export const activeSets = (sets: Sets): Frozen<ReplicaSet>[] => sets.filter((set) => replicasOf(set) > 0)

export function isRollingUpdate(deployment: Frozen<Deployment>): boolean {
  return (deployment.spec.strategy?.type ?? 'RollingUpdate') === 'RollingUpdate'
}

/** maxSurge and maxUnavailable as counts; never both 0, or nothing could move. */
export function fenceposts(deployment: Frozen<Deployment>): { surge: number; unavailable: number } {
  if (!isRollingUpdate(deployment)) return { surge: 0, unavailable: 0 }
  const { maxSurge, maxUnavailable } = deployment.spec.strategy?.rollingUpdate ?? {}
  const replicas = replicasOf(deployment)
  const surge = scaledValue(maxSurge ?? 0, replicas, true) ?? 0
  const unavailable = scaledValue(maxUnavailable ?? 0, replicas, false) ?? 0
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable }
}

/** How many pods may be missing. */
export function maxUnavailable(deployment: Frozen<Deployment>): number {
  const replicas = replicasOf(deployment)
  return isRollingUpdate(deployment) && replicas > 0 ? Math.min(fenceposts(deployment).unavailable, replicas) : 0
}

/** Number of pods above spec.replicas that a rolling update may create. */
export const maxSurge = (deployment: Frozen<Deployment>): number => fenceposts(deployment).surge

/** The set made from the deployment's template; the oldest, if chance made several. */
export function findNewSet(deployment: Frozen<Deployment>, sets: Sets): Frozen<ReplicaSet> | undefined {
  return [...sets].sort(olderFirst).find((set) => sameTemplate(set.spec.template, deployment.spec.template))
}

export function sameTemplate(a: Frozen<PodTemplateSpec> | undefined, b: Frozen<PodTemplateSpec> | undefined): boolean {
  return semanticEqual(withoutHash(a), withoutHash(b))
}

function withoutHash(template: Frozen<PodTemplateSpec> | undefined): unknown {
  const { [podTemplateHashLabel]: _, ...labels } = template?.metadata?.labels ?? {}
  return { ...template, metadata: { ...template?.metadata, labels } }
}

/** Revisions are int64 in Go, and other programs write large ones. 0 where there is none, or no number. */
export function revisionOf(object: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined } }): bigint {
  return parseRevision(object.metadata.annotations?.[revisionAnnotation]) ?? 0n
}

/** As Go's strconv.ParseInt reads it; undefined where that fails. */
export function parseRevision(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d{1,40}$/.test(text)) return undefined
  const value = BigInt(text.replace('+', ''))
  return value === BigInt.asIntN(64, value) ? value : undefined
}

/** The revision after the greatest of the sets; it wraps around as Go's int64 does. */
export function nextRevision(sets: Sets): bigint {
  let most = 0n
  for (const set of sets) if (revisionOf(set) > most) most = revisionOf(set)
  return BigInt.asIntN(64, most + 1n)
}

/** The size that the new set may have now. */
export function newSetReplicas(deployment: Frozen<Deployment>, all: Sets, newSet: number): number {
  const wanted = replicasOf(deployment)
  if (!isRollingUpdate(deployment)) return wanted
  const room = wanted + maxSurge(deployment) - totalReplicas(all)
  return room <= 0 ? newSet : newSet + Math.min(room, wanted - newSet)
}

export interface Resize {
  readonly set: Frozen<ReplicaSet>
  readonly to: number
}

/** Resizes of the old sets during a rolling update: unhealthy pods first, then as many as availability permits, oldest set first. */
export function shrinkOld(deployment: Frozen<Deployment>, old: Sets, newSet: Frozen<ReplicaSet>): Resize[] {
  const active = activeSets(old)
  if (active.length === 0) return []
  const all = [...active, newSet]
  const minAvailable = replicasOf(deployment) - maxUnavailable(deployment)
  const newUnavailable = replicasOf(newSet) - (newSet.status?.availableReplicas ?? 0)
  const mayGo = totalReplicas(all) - minAvailable - newUnavailable
  if (mayGo <= 0) return []
  const sizes = new Map<Frozen<ReplicaSet>, number>(active.map((set) => [set, replicasOf(set)]))
  const oldest = [...active].sort(olderFirst)
  let cleaned = 0
  for (const set of oldest) {
    if (cleaned >= mayGo) break
    const size = sizes.get(set) ?? 0
    const unhealthy = Math.min(mayGo - cleaned, size - (set.status?.availableReplicas ?? 0))
    // Pods that are about to be deleted still count as available: wait for the status, because they are no spare ones.
    if (unhealthy < 0) return resizes(oldest, sizes)
    sizes.set(set, size - unhealthy)
    cleaned += unhealthy
  }
  let spare = availableReplicas(all) - minAvailable
  for (const set of oldest) {
    if (spare <= 0) break
    const size = sizes.get(set) ?? 0
    const going = Math.min(size, spare)
    sizes.set(set, size - going)
    spare -= going
  }
  return resizes(oldest, sizes)
}

const resizes = (sets: Sets, sizes: ReadonlyMap<Frozen<ReplicaSet>, number>): Resize[] =>
  sets.flatMap((set) => (sizes.get(set) === replicasOf(set) ? [] : [{ set, to: sizes.get(set) ?? 0 }]))

/** What a change of spec.replicas means for each set, also in the middle of a rollout: everyone's share. */
export function scaleProportionally(deployment: Frozen<Deployment>, newSet: Frozen<ReplicaSet> | undefined, old: Sets): Resize[] {
  const wanted = replicasOf(deployment)
  const candidates = newSet ? [...old, newSet] : [...old]
  const active = activeSets(candidates)
  const only = active.length === 1 ? active[0] : active.length === 0 ? (newSet ?? [...old].sort(olderFirst).at(-1)) : undefined
  if (only) return replicasOf(only) === wanted ? [] : [{ set: only, to: wanted }]
  if (active.length === 0) return []
  if (isSaturated(deployment, newSet)) return activeSets(old).map((set) => ({ set, to: 0 }))
  if (!isRollingUpdate(deployment)) return []
  const allowed = wanted > 0 ? wanted + maxSurge(deployment) : 0
  const toAdd = allowed - totalReplicas(active)
  const ordered = [...active].sort((a, b) => replicasOf(b) - replicasOf(a) || (toAdd > 0 ? olderFirst(b, a) : olderFirst(a, b)))
  let added = 0
  const sizes = ordered.map((set) => {
    const share = toAdd === 0 ? 0 : shareOf(deployment, set, toAdd, added)
    added += share
    return replicasOf(set) + share
  })
  // Rounding's rest goes to the largest.
  if (toAdd !== 0 && sizes[0] !== undefined) sizes[0] = Math.max(0, sizes[0] + toAdd - added)
  return ordered.map((set, i) => ({ set, to: Math.min(sizes[i] ?? 0, maxReplicas) }))
}

function shareOf(deployment: Frozen<Deployment>, set: Frozen<ReplicaSet>, toAdd: number, added: number): number {
  const left = toAdd - added
  if (replicasOf(set) === 0 || left === 0) return 0
  const fraction = fractionOf(deployment, set)
  return toAdd > 0 ? Math.min(fraction, left) : Math.max(fraction, left)
}

function fractionOf(deployment: Frozen<Deployment>, set: Frozen<ReplicaSet>): number {
  if (replicasOf(deployment) === 0) return -replicasOf(set)
  const before = numberAnnotation(set, maxReplicasAnnotation) || deployment.status?.replicas || 0
  if (before === 0) return 0
  const size = (replicasOf(set) * (replicasOf(deployment) + maxSurge(deployment))) / before
  return Math.trunc(size < 0 ? size - 0.5 : size + 0.5) - replicasOf(set)
}

function isSaturated(deployment: Frozen<Deployment>, set: Frozen<ReplicaSet> | undefined): boolean {
  const wanted = replicasOf(deployment)
  return (
    set !== undefined &&
    numberAnnotation(set, desiredReplicasAnnotation) === wanted &&
    replicasOf(set) === wanted &&
    (set.status?.availableReplicas ?? 0) === wanted
  )
}

/** True when spec.replicas differs from the size in the sets' annotations. */
export function isScalingEvent(deployment: Frozen<Deployment>, sets: Sets): boolean {
  return activeSets(sets).some((set) => {
    const desired = numberAnnotation(set, desiredReplicasAnnotation)
    return desired !== undefined && desired !== replicasOf(deployment)
  })
}

function numberAnnotation(set: Frozen<ReplicaSet>, name: string): number | undefined {
  const text = ownValue(set.metadata.annotations, name)
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

function compareRevisions(a: Frozen<ReplicaSet>, b: Frozen<ReplicaSet>): number {
  const [one, other] = [revisionOf(a), revisionOf(b)]
  return one < other ? -1 : one > other ? 1 : 0
}

/** Unused old sets beyond revisionHistoryLimit, oldest revision first. */
export function setsToClean(deployment: Frozen<Deployment>, old: Sets): Frozen<ReplicaSet>[] {
  const limit = deployment.spec.revisionHistoryLimit
  if (limit === undefined) return []
  const alive = old.filter((set) => !set.metadata.deletionTimestamp)
  if (alive.length <= limit) return []
  const surplus = [...alive].sort((a, b) => compareRevisions(a, b) || olderFirst(a, b)).slice(0, alive.length - limit)
  return surplus.filter(
    (set) => (set.status?.replicas ?? 0) === 0 && replicasOf(set) === 0 && (set.metadata.generation ?? 0) <= (set.status?.observedGeneration ?? 0),
  )
}

function olderFirst(a: Frozen<ReplicaSet>, b: Frozen<ReplicaSet>): number {
  const age = (parseTime(a.metadata.creationTimestamp ?? '') ?? 0) - (parseTime(b.metadata.creationTimestamp ?? '') ?? 0)
  return age || ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1)
}
