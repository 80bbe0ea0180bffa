/** Why a StatefulSet is not complete (L2): in the order of its pods, each of which may hold back the next. */
import type { StatefulSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodReady } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, type Explanation, kubectl } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import type { View } from './view.ts'
import { causesOfPods, failedCreation } from './workloadPods.ts'

const revisionLabel = 'controller-revision-hash'

export async function explainStatefulSet(set: Frozen<StatefulSet>, view: View): Promise<Explanation> {
  const { replicas = 1, selector } = set.spec
  const { readyReplicas = 0, observedGeneration, updateRevision, currentRevision } = set.status ?? {}
  const state = `${readyReplicas} of ${replicas} replicas are ready`
  const silence = controllerSilence(set, observedGeneration)
  if (silence) return { state, causes: [silence] }
  const pods = (await view.podsOf(set, selector)) ?? []
  if (readyReplicas < replicas) return { state, causes: await missingCauses(set, pods, view), isSettled: false }
  const isUpdated = updateRevision === undefined || updateRevision === currentRevision
  return { state, causes: isUpdated ? [] : updateCauses(set, pods), isSettled: isUpdated }
}

async function missingCauses(set: Frozen<StatefulSet>, pods: readonly Frozen<Pod>[], view: View): Promise<readonly Cause[]> {
  const { replicas = 1, ordinals, podManagementPolicy = 'OrderedReady' } = set.spec
  const first = ordinals?.start ?? 0
  const byName = new Map(pods.map((pod) => [pod.metadata.name ?? '', pod]))
  const isParallel = podManagementPolicy === 'Parallel'
  for (let at = first; at < first + replicas; at++) {
    const name = `${set.metadata.name}-${at}`
    const pod = byName.get(name)
    if (pod && isPodReady(pod)) continue
    if (isParallel) break
    const causes = pod ? await causesOfPods([pod], view) : await creationCauses(set, name, view)
    const later = at + 1 < first + replicas ? '; the pods after it wait for it' : ''
    return causes.map((cause) => ({ ...cause, text: `${cause.text}${later}`, ...brokenRevision(set, pod) }))
  }
  const failure = await failedCreation(set, view)
  return [...(failure && pods.length < replicas ? [failure] : []), ...(await causesOfPods(pods, view))]
}

async function creationCauses(set: Frozen<StatefulSet>, name: string, view: View): Promise<readonly Cause[]> {
  const failure = await failedCreation(set, view)
  return failure ? [{ ...failure, text: `pod ${name} cannot be created: ${failure.text}` }] : []
}

/** The controller replaces a pod of another revision only after it is ready: a broken one has to be deleted by hand. */
function brokenRevision(set: Frozen<StatefulSet>, pod: Frozen<Pod> | undefined): Pick<Cause, 'next'> {
  const hash = pod?.metadata.labels?.[revisionLabel]
  if (!pod || hash === undefined || set.status?.updateRevision === undefined || hash === set.status.updateRevision) return {}
  return { next: kubectl(set.metadata.namespace, 'delete', 'pod', pod.metadata.name ?? '') }
}

function updateCauses({ spec, metadata: { namespace }, status }: Frozen<StatefulSet>, pods: readonly Frozen<Pod>[]): readonly Cause[] {
  const old = pods.filter(({ metadata }) => metadata.labels?.[revisionLabel] !== status?.updateRevision)
  const [one] = old
  if (!one) return []
  const { type = 'RollingUpdate', rollingUpdate } = spec.updateStrategy ?? {}
  const next = kubectl(namespace, 'delete', 'pod', one.metadata.name ?? '')
  if (type === 'OnDelete')
    return [
      {
        text: `${old.length} of its pods have an older template, and are replaced only when they are deleted`,
        evidence: 'spec.updateStrategy.type OnDelete',
        next,
      },
    ]
  const { partition = 0 } = rollingUpdate ?? {}
  return partition > 0
    ? [
        {
          text: `pods below number ${partition} keep the older template`,
          evidence: `spec.updateStrategy.rollingUpdate.partition ${partition}`,
          next: kubectl(namespace, 'get', 'pods', '-L', revisionLabel),
        },
      ]
    : []
}
