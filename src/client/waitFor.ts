/**
 * Waiting for the cluster (L2): until one object is as wished, by reading it and watching it; or until anything else is, by asking now and
 * then. Upstream: client-go/tools/watch until.go, apimachinery/pkg/util/wait (v1.36).
 */
import { type Frozen, type KubeObject, keyOf, type ObjectRef } from '#api/machinery/meta'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { ReflectorDeps } from './cache/reflector.ts'
import { runReflector } from './cache/reflector.ts'
import type { ResourceClient } from './client.ts'

/** Resolves as soon as `holds` is true for the object, or for its absence (undefined); checks every state that the server sends. Abort to give up. */
export async function waitFor<T extends KubeObject>(
  client: ResourceClient<T>,
  ref: ObjectRef,
  holds: (object: Frozen<T> | undefined) => boolean,
  deps: ReflectorDeps,
  signal: AbortSignal,
): Promise<Frozen<T> | undefined> {
  using over = abortScope(signal)
  let outcome: { readonly object: Frozen<T> | undefined } | { readonly error: unknown } | undefined
  const look = (object: Frozen<T> | undefined) => {
    if (outcome) return
    try {
      if (!holds(object)) return
      outcome = { object }
    } catch (error) {
      outcome = { error }
    }
    over.abort()
  }
  const wanted = keyOf({ metadata: ref })
  await runReflector(
    client,
    {
      replace: (items) => look(items.find((item) => keyOf(item) === wanted)),
      apply: (events) => {
        for (const { type, object } of events) if (keyOf(object) === wanted) look(type === 'DELETED' ? undefined : object)
      },
    },
    deps,
    { namespace: ref.namespace, fieldSelector: `metadata.name=${ref.name}` },
    over.signal,
  )
  if (!outcome) throw signal.reason
  if ('error' in outcome) throw outcome.error
  return outcome.object
}

/** For {@link waitFor}: the object's status has a condition of this type with this status. */
export function hasCondition(type: string, status = 'True'): (object: Frozen<KubeObject> | undefined) => boolean {
  return (object) => {
    const conditions = (object as { status?: { conditions?: readonly { type?: string; status?: string }[] } } | undefined)?.status?.conditions
    return conditions?.some((condition) => condition.type === type && condition.status === status) ?? false
  }
}

/** Asks at once and then every `intervalMs` until the answer is something. */
export async function poll<T>(clock: Clock, intervalMs: number, ask: () => Promise<T | undefined> | T | undefined, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted()
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    await clock.sleep(intervalMs, signal)
  }
}
