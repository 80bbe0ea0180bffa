/** Why a ReplicaSet or a ReplicationController has fewer ready pods than it should have (L2). */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { ReplicationController } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import { refusalCause } from './refusals.ts'
import type { View } from './view.ts'
import { causesOfPods } from './workloadPods.ts'

export async function explainReplicaSet(set: Frozen<ReplicaSet>, view: View): Promise<Explanation> {
  return explain(set, await view.podsOf(set, set.spec.selector), view)
}

export async function explainReplicationController(set: Frozen<ReplicationController>, view: View): Promise<Explanation> {
  return explain(set, await view.podsOf(set, { matchLabels: set.spec.selector ?? {} }), view)
}

type Pods = Awaited<ReturnType<View['podsOf']>>

async function explain(set: Frozen<ReplicaSet | ReplicationController>, pods: Pods, view: View): Promise<Explanation> {
  const { replicas = 1 } = set.spec
  const { readyReplicas = 0, observedGeneration } = set.status ?? {}
  const state = `${readyReplicas} of ${replicas} replicas are ready`
  const silence = controllerSilence(set, observedGeneration)
  if (silence) return { state, causes: [silence] }
  if (readyReplicas >= replicas) return { state, causes: [] }
  return { state, causes: [...(await creationCauses(set, view)), ...(await causesOfPods(pods ?? [], view))], isSettled: false }
}

async function creationCauses(set: Frozen<ReplicaSet | ReplicationController>, view: View): Promise<readonly Cause[]> {
  const failure = findCondition(set.status?.conditions, 'ReplicaFailure')
  if (failure?.status !== 'True') return []
  const { kind, metadata } = set
  return [await refusalCause(failure.message ?? '', `${kind} ${metadata.name}: ${conditionText(failure)}`, metadata.namespace ?? '', view)]
}
