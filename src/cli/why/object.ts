/** `skiff why KIND/NAME`: why an object waits (L4): finds the object, reads as the user, and adds the scheduler's view of a pod that has no node. */
import type { SchedulingExplanation } from '#api/debug/scheduling'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Transport } from '#client/transport'
import { type Answer, describeAnswer } from '#why/answer'
import { explainedResources, explainObject } from '#why/explainObject'
import { CommandError } from '../exitCodes.ts'
import { pathOf } from '../hops/manifest.ts'
import { createReader, paths, required } from '../net/reader.ts'
import { type Kind, kindNamed, listableKinds } from '../past/objects.ts'
import { type Ask, askFor } from './questions.ts'
import { describeScheduling } from './scheduling.ts'

export interface ObjectAnswer extends Answer {
  /** The scheduler's view, for a pod without a node and for one that does not wait. */
  readonly scheduling?: SchedulingExplanation | undefined
}

/** @param text NAME of a pod, KIND/NAME, or NAMESPACE/NAME of a pod */
export async function explainNamed(transport: Transport, ask: Ask, text: string, namespace: string): Promise<ObjectAnswer> {
  const [first = '', second, ...more] = text.split('/')
  if (first === '' || second === '' || more.length > 0) throw new CommandError('usage', `${text}: expected KIND/NAME, or the name of a pod`)
  if (second === undefined) return explainPod(transport, ask, namespace, first)
  const kind = await kindOf(transport, first)
  if (!kind) return explainForeignPod(transport, ask, first, second)
  if (kind.group === '' && kind.resource === 'pods') return explainPod(transport, ask, namespace, second)
  return explainKind(transport, kind, namespace, second)
}

async function kindOf(transport: Transport, text: string): Promise<Kind | undefined> {
  const kinds = await listableKinds(transport)
  try {
    return kindNamed(kinds, text)
  } catch (error) {
    if (error instanceof CommandError) return undefined
    throw error
  }
}

export async function explainKind(transport: Transport, kind: Kind, namespace: string, name: string): Promise<Answer> {
  const reader = createReader(transport)
  const what = kind.namespaced ? `${kind.kind} ${namespace}/${name}` : `${kind.kind} ${name}`
  const object = required(await reader.get<KubeObject>(pathOf(kind, namespace, name)), what)
  return explainObject(kind, object, reader)
}

/** NAMESPACE/NAME. Without such a pod, the first word was meant as a kind. */
async function explainForeignPod(transport: Transport, ask: Ask, namespace: string, name: string): Promise<ObjectAnswer> {
  const { found } = await createReader(transport).get<Pod>(paths.pod(namespace, name))
  if (found) return withScheduling(transport, ask, found)
  throw new CommandError('usage', `the cluster has no kind "${namespace}", and there is no pod ${namespace}/${name}`, {
    hint: `kinds with answers of their own: ${explainedResources().join(', ')}; every other kind is explained by its conditions`,
  })
}

async function explainPod(transport: Transport, ask: Ask, namespace: string, name: string): Promise<ObjectAnswer> {
  const { found, notShown } = await createReader(transport).get<Pod>(paths.pod(namespace, name))
  if (found) return withScheduling(transport, ask, found)
  if (notShown !== undefined) throw new CommandError('internal', `pod ${namespace}/${name} is not shown: ${notShown}`)
  throw new CommandError('notFound', `there is no pod ${namespace}/${name}`, { hint: `look with: kubectl get pod -A --field-selector metadata.name=${name}` })
}

async function withScheduling(transport: Transport, ask: Ask, pod: Frozen<Pod>): Promise<ObjectAnswer> {
  const answer = await explainObject({ group: '', resource: 'pods' }, pod, createReader(transport))
  if (pod.spec.nodeName !== undefined && answer.causes.length > 0) return answer
  const { namespace, name } = pod.metadata
  try {
    return { ...answer, scheduling: await askFor<SchedulingExplanation>(ask, `/debug/scheduling?pod=${encodeURIComponent(`${namespace}/${name}`)}`) }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    // Pods that have ended, or that name another scheduler.
    if (error.exit === 'notFound') return answer
    return { ...answer, notRead: [...answer.notRead, `what the scheduler says: ${error.message}`] }
  }
}

export function describeObject({ scheduling, ...answer }: ObjectAnswer): string {
  return `${describeAnswer(answer)}${scheduling ? `\n${describeScheduling(scheduling)}` : ''}`
}
