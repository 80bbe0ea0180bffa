/** What keeps the pods of a workload from being ready (L2): the first cause of each pod, the same cause once. */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodReady, isPodTerminating } from '#api/helpers/pods'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { type Cause, skiffWhy } from './answer.ts'
import { deletionCauses } from './deletion.ts'
import { podCauses } from './pod.ts'
import { refusalCause } from './refusals.ts'
import { eventText, type View } from './view.ts'

/** Pods with the same fault have the same template: looking at more would show nothing else. */
const mostPods = 10

/** The causes of the pods that are not ready, each with the first pod that has it and how many others do. */
export async function causesOfPods(pods: readonly Frozen<Pod>[], view: View): Promise<readonly Cause[]> {
  const waiting = pods.filter((pod) => !isPodReady(pod) && pod.status?.phase !== 'Succeeded')
  const found = new Map<string, { readonly cause: Cause; readonly pod: Frozen<Pod>; count: number }>()
  for (const pod of waiting.slice(0, mostPods)) {
    // Items of a list do not name their kind.
    const [cause] = isPodTerminating(pod) ? await deletionCauses({ ...pod, kind: 'Pod' }, view) : await podCauses(pod, view)
    if (!cause) continue
    const key = cause.text.replaceAll(pod.metadata.name ?? '', '')
    const known = found.get(key)
    if (known) known.count++
    else found.set(key, { cause, pod, count: 1 })
  }
  return [...found.values()].map(({ cause, pod, count }) => ofPod(cause, pod, count))
}

function ofPod(cause: Cause, { metadata: { namespace, name = '' } }: Frozen<Pod>, count: number): Cause {
  const others = count > 1 ? ` (and ${count - 1} more)` : ''
  return { ...cause, text: `pod ${name}${others}: ${cause.text}`, next: cause.next ?? skiffWhy('pod', name, namespace) }
}

/** The refusal of the newest object that a controller could not create, by its event. */
export async function failedCreation(owner: Frozen<KubeObject>, view: View): Promise<Cause | undefined> {
  const [newest, ...older] = await view.eventsOf(owner)
  const failure = newest?.reason === 'FailedCreate' ? newest : older.find(({ reason }) => reason === 'FailedCreate' || reason === 'SuccessfulCreate')
  if (failure?.reason !== 'FailedCreate') return undefined
  return refusalCause(failure.message ?? '', eventText(failure), owner.metadata.namespace ?? '', view)
}
