/** Notes for a reader what the kubelet does about a pod (L3): its steps, and the calls of the runtime that they make. */
import { objectKey } from '#api/debug/traces'
import { messageOf } from '#base/messageOf'
import type { ObjectTrace } from '#trace/objectTrace'

export interface NamedPod {
  readonly namespace: string
  readonly name: string
}

/** Does the work, and notes it if the pod is followed. */
export async function noted<T>(
  trace: ObjectTrace | undefined,
  pod: NamedPod,
  about: { readonly what: string; readonly node: string; readonly component: string },
  work: () => Promise<T>,
  resultOf: (value: T) => string = () => 'done',
): Promise<T> {
  if (!trace?.follows('pods', pod.namespace, pod.name)) return work()
  const atMs = trace.now()
  const note = (result: string) => trace.note({ ...about, object: objectKey('pods', pod.namespace, pod.name), atMs, durationMs: trace.now() - atMs, result })
  try {
    const value = await work()
    note(resultOf(value))
    return value
  } catch (error) {
    note(`failed: ${messageOf(error).slice(0, 256)}`)
    throw error
  }
}
