/** Conditions as both kinds of flow control hold them (L1): one of each type. Upstream: pkg/apis/flowcontrol/validation (v1.36). */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'

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
