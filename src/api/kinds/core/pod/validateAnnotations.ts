/** Annotations that mean something on pods (L1). Upstream: pkg/apis/core/validation ValidatePodSpecificAnnotations (v1.36). */
import type { Pod } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { appArmorPrefix, profileAnnotationFaults } from './profileAnnotations.ts'

type Annotations = Readonly<Record<string, string>>

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
  errors.push(...profileAnnotationFaults(annotations, spec, path))
  return old ? [...errors, ...changeFaults(annotations, old.metadata.annotations ?? {}, path)] : errors
}

/** Annotations for profiles and for the mirror pod cannot change after creation. */
function changeFaults(annotations: Annotations, old: Annotations, path: FieldPath): FieldError[] {
  const name = (key: string) => (key.startsWith(appArmorPrefix) ? 'AppArmor annotations' : key === mirror ? 'mirror pod annotation' : undefined)
  const errors: FieldError[] = []
  for (const [key, value] of Object.entries(old)) {
    const what = annotations[key] === value ? undefined : name(key)
    if (what) errors.push(fieldError.forbidden(path.key(key), `may not remove or update ${what}`))
  }
  for (const key of Object.keys(annotations)) {
    const what = old[key] === undefined ? name(key) : undefined
    if (what) errors.push(fieldError.forbidden(path.key(key), `may not add ${what}`))
  }
  return errors
}

function isInt32(text: string): boolean {
  return /^(0|-?[1-9]\d*)$/.test(text) && Number(text) >= -2_147_483_648 && Number(text) <= 2_147_483_647
}
