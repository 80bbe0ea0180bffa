/** Annotations that mean something on pods (L1). Upstream: pkg/apis/core/validation ValidatePodSpecificAnnotations (v1.36). */
import type { Pod } from '#api/gen/types/core.v1'
import { isMirrorPod } from '#api/helpers/pods'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'

const deletionCost = 'controller.kubernetes.io/pod-deletion-cost'
const mirror = 'kubernetes.io/config.mirror'

/** @param old of an update: a cost that was wrong before may stay, a mirror pod stays one */
export function annotationFaults({ metadata, spec }: Pod, old: Frozen<Pod> | undefined, path: FieldPath): FieldError[] {
  const annotations = metadata.annotations ?? {}
  const errors: FieldError[] = []
  if (annotations[mirror] !== undefined && !spec.nodeName)
    errors.push(fieldError.invalid(path.key(mirror), annotations[mirror], 'must set spec.nodeName if mirror pod annotation is set'))
  const cost = annotations[deletionCost]
  if (cost !== undefined && !isInt32(cost) && cost !== old?.metadata.annotations?.[deletionCost])
    errors.push(fieldError.invalid(path.key(deletionCost), cost, 'must be a 32bit integer'))
  if (old && isMirrorPod(old) !== (annotations[mirror] !== undefined))
    errors.push(fieldError.forbidden(path.key(mirror), 'may not add or remove mirror pod annotation'))
  else if (old && annotations[mirror] !== old.metadata.annotations?.[mirror])
    errors.push(fieldError.forbidden(path.key(mirror), 'may not update mirror pod annotation'))
  return errors
}

function isInt32(text: string): boolean {
  return /^(0|-?[1-9]\d*)$/.test(text) && Number(text) >= -2_147_483_648 && Number(text) <= 2_147_483_647
}
