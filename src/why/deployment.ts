/** Why the rollout of a Deployment does not end (L2): its newest ReplicaSet first, then the older ones. */
import type { Deployment, ReplicaSet } from '#api/gen/types/apps.v1'
import { isControlledBy } from '#api/helpers/owners'
import { findCondition } from '#api/machinery/conditions'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import { explainReplicaSet } from './replicaSet.ts'
import type { View } from './view.ts'

const revision = 'deployment.kubernetes.io/revision'

export async function explainDeployment(deployment: Frozen<Deployment>, view: View): Promise<Explanation> {
  const { replicas = 1 } = deployment.spec
  const { readyReplicas = 0, updatedReplicas = 0, availableReplicas = 0, replicas: current = 0, observedGeneration } = deployment.status ?? {}
  const state = `${readyReplicas} of ${replicas} replicas are ready, ${updatedReplicas} are of the newest template`
  const silence = controllerSilence(deployment, observedGeneration)
  if (silence) return { state, causes: [silence] }
  const isDone = availableReplicas >= replicas && updatedReplicas >= replicas && current <= updatedReplicas
  return { state, causes: isDone ? [] : await rolloutCauses(deployment, view), isSettled: isDone }
}

async function rolloutCauses(deployment: Frozen<Deployment>, view: View): Promise<readonly Cause[]> {
  const { namespace, name = '' } = deployment.metadata
  const { paused, selector, minReadySeconds = 0 } = deployment.spec
  const listed = await view.list<ReplicaSet>('replicasets', namespace, { labelSelector: selectorOf(selector).toString() })
  const number = ({ metadata }: Frozen<ReplicaSet>) => Number(metadata.annotations?.[revision] ?? 0)
  const [newest, ...older] = (listed ?? []).filter((set) => isControlledBy(set, deployment)).sort((one, other) => number(other) - number(one))
  const pause: Cause[] = paused
    ? [{ text: 'its rollout is paused', evidence: 'spec.paused true', next: kubectl(namespace, 'rollout', 'resume', `deployment/${name}`) }]
    : []
  const ofNewest = newest ? (await explainReplicaSet(withKind(newest), view)).causes : []
  if (ofNewest.length > 0) return [...ofNewest.map((cause) => withDeadline(cause, deployment)), ...pause]
  if (pause.length > 0) return pause
  for (const set of older) {
    const { causes } = await explainReplicaSet(withKind(set), view)
    if (causes.length > 0) return causes.map((cause) => ({ ...cause, text: `of the previous template, ${cause.text}` }))
  }
  if (minReadySeconds > 0 && (newest?.status?.readyReplicas ?? 0) > (newest?.status?.availableReplicas ?? 0))
    return [
      {
        text: `its new pods are ready, and count as available ${minReadySeconds} s later`,
        evidence: `spec.minReadySeconds ${minReadySeconds}, ReplicaSet ${newest?.metadata.name}`,
        next: kubectl(namespace, 'rollout', 'status', `deployment/${name}`),
      },
    ]
  return deadlineOf(deployment).map((evidence) => ({
    text: 'its rollout has made no progress within its deadline',
    evidence,
    next: kubectl(namespace, 'rollout', 'status', `deployment/${name}`),
  }))
}

/** Items of a list do not name their kind. */
const withKind = (set: Frozen<ReplicaSet>): Frozen<ReplicaSet> => ({ ...set, kind: 'ReplicaSet' })

function deadlineOf({ status }: Frozen<Deployment>): string[] {
  const progressing = findCondition(status?.conditions, 'Progressing')
  return progressing?.status === 'False' ? [conditionText({ ...progressing, message: '' })] : []
}

function withDeadline(cause: Cause, deployment: Frozen<Deployment>): Cause {
  return { ...cause, evidence: [cause.evidence, ...deadlineOf(deployment)].join('; ') }
}
