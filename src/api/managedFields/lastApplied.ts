/**
 * The annotation in which kubectl's client-side apply keeps the configuration (L1), where kubectl moves to server-side apply and back.
 * Upstream: apimachinery/pkg/util/managedfields/internal/lastapplied*.go (v1.36).
 */

import type { DeepReadonly } from '#base/frozen'
import { goJson } from '../machinery/goJson.ts'
import { parseExactly } from '../machinery/json.ts'
import type { KubeObject } from '../machinery/meta.ts'
import { annotationsFit } from '../machinery/objectMeta.ts'
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
    configuration = parseExactly(annotation)
  } catch {
    // kubectl did not write it: it proves nothing.
    return false
  }
  if (typeof configuration !== 'object' || configuration === null) return false
  const allowed = fieldSetOf(configuration, schema)
  return conflicts.every(({ fields }) => isEmpty(difference(fields, allowed)))
}

/**
 * A later client-side apply compares with the annotation: where it holds a configuration, it gets the one that was applied last, and is dropped
 * when the annotations would exceed their limit with it.
 */
export function renewLastApplied(object: KubeObject, applied: DeepReadonly<KubeObject>): void {
  const { annotations } = object.metadata
  if (!annotations?.[annotationName]) return
  annotations[annotationName] = `${goJson(withoutAnnotation(applied))}\n`
  if (!annotationsFit(annotations)) delete annotations[annotationName]
}

/** A configuration that has the annotation itself does not repeat it. */
function withoutAnnotation(applied: DeepReadonly<KubeObject>): unknown {
  const { metadata } = applied
  if (metadata.annotations?.[annotationName] === undefined) return applied
  const { [annotationName]: _, ...annotations } = metadata.annotations
  return { ...applied, metadata: { ...metadata, annotations } }
}
