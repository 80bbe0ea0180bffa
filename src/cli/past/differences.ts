/** The objects of a kind that differ between two revisions (L4): both lists are read by pages in the order of their keys, side by side. */

import { type FieldChange, fieldChanges } from '#api/debug/fieldChanges'
import type { Transport } from '#client/transport'
import { type Kind, keyOf, objectsAt, type PastObject } from './objects.ts'

export interface Difference {
  readonly type: 'created' | 'changed' | 'deleted'
  /** Namespace and name. */
  readonly key: string
  readonly changes: readonly FieldChange[]
}

export interface DifferenceOptions {
  readonly from: number
  readonly to: number
  readonly namespace?: string | undefined
  readonly showSecrets: boolean
}

export async function* differences(transport: Transport, kind: Kind, { from, to, namespace, showSecrets }: DifferenceOptions): AsyncGenerator<Difference> {
  const options = namespace === undefined ? {} : { namespace }
  const [before, after] = [objectsAt(transport, kind, from, options), objectsAt(transport, kind, to, options)]
  const next = async (objects: AsyncGenerator<PastObject>) => {
    const { value, done } = await objects.next()
    return done ? undefined : value
  }
  let [one, other] = [await next(before), await next(after)]
  while (one || other) {
    const order = !one ? 1 : !other ? -1 : compareKeys(keyOf(one), keyOf(other))
    if (one && order < 0) yield { type: 'deleted', key: keyOf(one), changes: [] }
    else if (other && order > 0) yield { type: 'created', key: keyOf(other), changes: [] }
    else if (one && other && one.metadata.resourceVersion !== other.metadata.resourceVersion) {
      const changes = fieldChanges(one, other, { showSecrets })
      if (changes.length > 0) yield { type: 'changed', key: keyOf(other), changes }
    }
    if (order <= 0) one = await next(before)
    if (order >= 0) other = await next(after)
  }
}

const compareKeys = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)
