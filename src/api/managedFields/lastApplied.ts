/**
 * The annotation in which kubectl's client-side apply keeps the configuration (L1), where kubectl moves to server-side apply and back.
 * Upstream: apimachinery/pkg/util/managedfields/internal/lastapplied*.go (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject } from '../machinery/meta.ts'
import type { Schema } from '../schema/schema.ts'
import type { Conflict } from './conflicts.ts'
import { difference, isEmpty } from './fieldSet.ts'
import { fieldSetOf } from './typed.ts'

const annotationName = 'kubectl.kubernetes.io/last-applied-configuration'

/** Whether all fields in conflict are in the configuration that the live object's annotation holds. */
export function allowedByLastApplied(live: DeepReadonly<KubeObject>, conflicts: readonly Conflict[], schema: Schema | undefined): boolean {
  const annotation = live.metadata.annotations?.[annotationName]
  if (annotation === undefined || annotation === '') return false
  let configuration: unknown
  try {
    configuration = JSON.parse(annotation)
  } catch {
    // kubectl did not write it: it proves nothing.
    return false
  }
  if (typeof configuration !== 'object' || configuration === null) return false
  const allowed = fieldSetOf(configuration, schema)
  return conflicts.every(({ fields }) => isEmpty(difference(fields, allowed)))
}

/** A later client-side apply compares with the annotation: where there is one, it must hold what was applied last. */
export function renewLastApplied(object: KubeObject, applied: DeepReadonly<KubeObject>): void {
  const { annotations } = object.metadata
  if (annotations?.[annotationName] !== undefined) annotations[annotationName] = `${JSON.stringify(applied)}\n`
}
