/**
 * One sync of a Deployment (L3): finds or makes the new ReplicaSet, resizes sets by the plan, and reports. Each write's answer replaces the
 * object it was based on, so that a sync continues with the server's version. Upstream: pkg/controller/deployment/{sync,rolling,recreate}.go (v1.36).
 */
import type { Deployment, DeploymentStatus, ReplicaSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { controllerReference, isControlledBy } from '#api/helpers/owners'
import { isPodTerminal } from '#api/helpers/pods'
import { podTemplateHash } from '#api/helpers/podTemplateHash'
import { findCondition } from '#api/machinery/conditions'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { deployments, replicaSets } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { ControllerContext } from '../framework/controller.ts'
import type { Result } from '../framework/reconciler.ts'
import { isNamespaceTerminating } from '../shared/podControl.ts'
import { newSetAnnotations, sizeAnnotations } from './annotations.ts'
import * as plan from './plan.ts'
import { deploymentStatus, hasProgressDeadline, isComplete, msUntilDeadline, rolloutStatus, withCondition } from './status.ts'

export interface DeploymentSync {
  readonly context: ControllerContext
  readonly events: EventRecorder
  readonly signal: AbortSignal
  readonly podsOf: (set: Frozen<ReplicaSet>) => readonly Frozen<Pod>[]
  deployment: Frozen<Deployment>
  /** Those the deployment controls. */
  sets: readonly Frozen<ReplicaSet>[]
}

export async function syncDeployment(sync: DeploymentSync): Promise<Result | undefined> {
  if (sync.deployment.metadata.deletionTimestamp) return finish(sync, deploymentStatus)
  await checkPaused(sync)
  if (sync.deployment.spec.paused || plan.isScalingEvent(sync.deployment, sync.sets)) {
    const newSet = await updateNewSet(sync)
    for (const { set, to } of plan.scaleProportionally(sync.deployment, newSet, oldSets(sync, newSet))) await resize(sync, set, to)
    if (sync.deployment.spec.paused) await clean(sync)
    return finish(sync, deploymentStatus)
  }
  return plan.isRollingUpdate(sync.deployment) ? rolling(sync) : recreate(sync)
}

const currentNewSet = (sync: DeploymentSync) => plan.findNewSet(sync.deployment, sync.sets)
const oldSets = (sync: DeploymentSync, newSet: Frozen<ReplicaSet> | undefined) => sync.sets.filter((set) => set.metadata.uid !== newSet?.metadata.uid)

async function rolling(sync: DeploymentSync): Promise<Result | undefined> {
  const newSet = (await updateNewSet(sync)) ?? (await createNewSet(sync))
  const wanted = plan.replicasOf(sync.deployment)
  const size = plan.replicasOf(newSet)
  const to = size > wanted ? wanted : size < wanted ? plan.newSetReplicas(sync.deployment, sync.sets, size) : size
  if (to !== size) {
    await resize(sync, newSet, to)
    return finish(sync, rolloutStatus)
  }
  const shrinking = plan.shrinkOld(sync.deployment, oldSets(sync, newSet), newSet)
  for (const { set, to } of shrinking) await resize(sync, set, to)
  if (shrinking.length === 0 && isComplete(sync.deployment, sync.deployment.status ?? {})) await clean(sync)
  return finish(sync, rolloutStatus)
}

async function recreate(sync: DeploymentSync): Promise<Result | undefined> {
  let newSet = await updateNewSet(sync)
  const active = plan.activeSets(oldSets(sync, newSet))
  for (const set of active) await resize(sync, set, 0)
  // Terminating pods count too: old and new must never run together.
  const stillThere = oldSets(sync, newSet).some((set) => (set.status?.replicas ?? 0) > 0 || sync.podsOf(set).some((pod) => !isPodTerminal(pod)))
  if (active.length > 0 || stillThere) return finish(sync, rolloutStatus)
  newSet ??= await createNewSet(sync)
  if (plan.replicasOf(newSet) !== plan.replicasOf(sync.deployment)) await resize(sync, newSet, plan.replicasOf(sync.deployment))
  if (isComplete(sync.deployment, sync.deployment.status ?? {})) await clean(sync)
  return finish(sync, rolloutStatus)
}

/** The status at the end of a sync; nothing is written when it is unchanged. */
async function finish(sync: DeploymentSync, statusOf: typeof rolloutStatus): Promise<Result | undefined> {
  const { clock } = sync.context
  const newSet = currentNewSet(sync)
  const status = statusOf(sync.deployment, sync.sets, newSet, clock.now())
  if (!semanticEqual(status, sync.deployment.status)) await writeStatus(sync, status)
  else if (statusOf === rolloutStatus) return { requeueAfterMs: msUntilDeadline(sync.deployment, status, clock.now()) }
  return undefined
}

async function writeStatus(sync: DeploymentSync, status: Frozen<DeploymentStatus>, annotations?: Readonly<Record<string, string>>): Promise<void> {
  const { deployment, context, signal } = sync
  const metadata = annotations ? { ...deployment.metadata, annotations } : deployment.metadata
  sync.deployment = await context.client.of(deployments).updateStatus({ ...deployment, metadata, status } as Frozen<Deployment>, { signal })
}

function progressStatus(sync: DeploymentSync, status: 'True' | 'False' | 'Unknown', reason: string, message: string): Frozen<DeploymentStatus> {
  const conditions = withCondition(
    (sync.deployment.status?.conditions ?? []) as never,
    { type: 'Progressing', status, reason, message },
    sync.context.clock.now(),
  )
  return { ...sync.deployment.status, conditions }
}

async function checkPaused(sync: DeploymentSync): Promise<void> {
  const { deployment } = sync
  if (!hasProgressDeadline(deployment)) return
  const reason = findCondition(deployment.status?.conditions, 'Progressing')?.reason
  if (reason === 'ProgressDeadlineExceeded') return
  if (deployment.spec.paused && reason !== 'DeploymentPaused') {
    await writeStatus(sync, progressStatus(sync, 'Unknown', 'DeploymentPaused', 'Deployment is paused'))
  } else if (!deployment.spec.paused && reason === 'DeploymentPaused') {
    await writeStatus(sync, progressStatus(sync, 'Unknown', 'DeploymentResumed', 'Deployment is resumed'))
  }
}

/** Brings the new set's annotations and the deployment's revision up to date, if there is a new set. */
async function updateNewSet(sync: DeploymentSync): Promise<Frozen<ReplicaSet> | undefined> {
  const { deployment } = sync
  const set = currentNewSet(sync)
  if (!set) return undefined
  const revision = plan.nextRevision(oldSets(sync, set))
  const annotations = newSetAnnotations(deployment, set, revision)
  const minReadySeconds = deployment.spec.minReadySeconds
  if (!semanticEqual(annotations, set.metadata.annotations) || (set.spec.minReadySeconds ?? 0) !== (minReadySeconds ?? 0)) {
    return updateSet(sync, set, { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, minReadySeconds } } as Frozen<ReplicaSet>)
  }
  const found = findCondition(deployment.status?.conditions, 'Progressing') !== undefined || !hasProgressDeadline(deployment)
  const status = found ? deployment.status : progressStatus(sync, 'True', 'FoundNewReplicaSet', `Found new replica set "${set.metadata.name}"`)
  await writeRevision(sync, String(plan.revisionOf(set)), status, !found)
  return set
}

async function writeRevision(sync: DeploymentSync, revision: string, status: Frozen<DeploymentStatus> | undefined, force: boolean): Promise<void> {
  const { annotations } = sync.deployment.metadata
  if (annotations?.[plan.revisionAnnotation] === revision && !force) return
  await writeStatus(sync, status ?? {}, { ...annotations, [plan.revisionAnnotation]: revision })
}

async function createNewSet(sync: DeploymentSync): Promise<Frozen<ReplicaSet>> {
  const { deployment, context, signal, events } = sync
  const hash = podTemplateHash(deployment.spec.template, deployment.status?.collisionCount)
  const made = newSetOf(deployment, hash)
  made.spec.replicas = plan.newSetReplicas(deployment, sync.sets, 0)
  const revision = plan.nextRevision(sync.sets)
  made.metadata.annotations = newSetAnnotations(deployment, undefined, revision)
  let created: Frozen<ReplicaSet>
  let isNew = true
  try {
    created = await context.client.of(replicaSets).create(made, { signal })
  } catch (error) {
    if (isStatus(error, 'AlreadyExists')) {
      created = await existingSet(sync, made.metadata.name ?? '', error)
      isNew = false
    } else {
      if (!isNamespaceTerminating(error)) await reportCreateError(sync, made.metadata.name ?? '', error)
      throw error
    }
  }
  sync.sets = [...sync.sets.filter((set) => set.metadata.uid !== created.metadata.uid), created]
  const size = plan.replicasOf(created)
  if (isNew && size > 0) events.event(deployment, 'Normal', 'ScalingReplicaSet', `Scaled up replica set ${created.metadata.name} from 0 to ${size}`)
  const report = isNew && hasProgressDeadline(deployment)
  const status = report ? progressStatus(sync, 'True', 'NewReplicaSetCreated', `Created new replica set "${created.metadata.name}"`) : deployment.status
  await writeRevision(sync, String(revision), status, report)
  return created
}

function newSetOf(deployment: Frozen<Deployment>, hash: string): NewObject<ReplicaSet> {
  const template = deepCopy<Deployment['spec']['template']>(deployment.spec.template)
  const labels = { ...template.metadata?.labels, [plan.podTemplateHashLabel]: hash }
  const selector = deepCopy<Deployment['spec']['selector']>(deployment.spec.selector)
  const { minReadySeconds } = deployment.spec
  return {
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace,
      ownerReferences: [controllerReference(deployment)],
      labels,
    },
    spec: {
      ...(minReadySeconds ? { minReadySeconds } : {}),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [plan.podTemplateHashLabel]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  }
}

/** Our own set that the cache has not shown yet, or a stranger with the same hash: then count a collision, and the next name is another. */
async function existingSet(sync: DeploymentSync, name: string, error: unknown): Promise<Frozen<ReplicaSet>> {
  const { deployment, context, signal } = sync
  const there = await context.client.of(replicaSets).get({ namespace: deployment.metadata.namespace, name }, { signal })
  if (isControlledBy(there, deployment) && plan.sameTemplate(there.spec.template, deployment.spec.template)) return there
  await writeStatus(sync, { ...deployment.status, collisionCount: (deployment.status?.collisionCount ?? 0) + 1 })
  throw error
}

async function reportCreateError(sync: DeploymentSync, name: string, error: unknown): Promise<void> {
  const message = `Failed to create new replica set "${name}": ${messageOf(error)}`
  sync.events.event(sync.deployment, 'Warning', 'ReplicaSetCreateError', message)
  if (hasProgressDeadline(sync.deployment)) await writeStatus(sync, progressStatus(sync, 'False', 'ReplicaSetCreateError', message))
}

async function updateSet(sync: DeploymentSync, set: Frozen<ReplicaSet>, changed: Frozen<ReplicaSet>): Promise<Frozen<ReplicaSet>> {
  const updated = await sync.context.client.of(replicaSets).update(changed, { signal: sync.signal })
  sync.sets = sync.sets.map((other) => (other.metadata.uid === set.metadata.uid ? updated : other))
  return updated
}

async function resize(sync: DeploymentSync, set: Frozen<ReplicaSet>, to: number): Promise<void> {
  const { deployment, events } = sync
  const from = plan.replicasOf(set)
  const annotations = { ...set.metadata.annotations, ...sizeAnnotations(deployment) }
  if (from === to && semanticEqual(annotations, set.metadata.annotations)) return
  await updateSet(sync, set, { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas: to } } as Frozen<ReplicaSet>)
  if (from === to) return
  const direction = to > from ? 'up' : 'down'
  events.event(deployment, 'Normal', 'ScalingReplicaSet', `Scaled ${direction} replica set ${set.metadata.name} from ${from} to ${to}`)
}

async function clean(sync: DeploymentSync): Promise<void> {
  const { deployment, context, signal } = sync
  for (const { metadata } of plan.setsToClean(deployment, oldSets(sync, currentNewSet(sync)))) {
    await context.client
      .of(replicaSets)
      .delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { signal })
      .catch((error: unknown) => {
        if (!isStatus(error, 'NotFound')) throw error
      })
  }
}
