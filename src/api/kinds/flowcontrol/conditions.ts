/** What both kinds of flow control are held to (L1): conditions of one type each, and the specs that are fixed. Upstream: pkg/apis/flowcontrol/validation (v1.36). */
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'

export const flowcontrolGroup = 'flowcontrol.apiserver.k8s.io'

export function conditionsFaults(conditions: readonly { readonly type?: string | undefined }[] | undefined, path: FieldPath): FieldError[] {
  const types = new Set<string>()
  return (conditions ?? []).flatMap(({ type = '' }, i) => {
    const at = path.index(i).child('type')
    const repeated = types.has(type) ? [fieldError.duplicate(at, type)] : []
    types.add(type)
    return type ? repeated : [...repeated, fieldError.required(at, 'must not be empty')]
  })
}

interface Configuration extends KubeObject {
  readonly spec: object
}

/** The mandatory objects are as they are; only what the exempt level takes and lends may be chosen. */
export function fixedSpecFaults(mandatory: readonly Configuration[], { metadata, spec }: Configuration, path: FieldPath): FieldError[] {
  const fixed = mandatory.find((one) => one.metadata.name === metadata.name)
  if (!fixed) return []
  const isExemptLevel = 'exempt' in fixed.spec
  if (semanticEqual(isExemptLevel ? { ...spec, exempt: fixed.spec.exempt } : spec, fixed.spec)) return []
  const except = isExemptLevel ? " except the 'spec.exempt' field" : ''
  return [fieldError.invalid(path, spec, `spec of '${metadata.name}'${except} must equal the fixed value`)]
}
