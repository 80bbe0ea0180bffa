/**
 * AlwaysPullImages (L3): sets imagePullPolicy Always on every pod, so that a pod cannot use an image that only others had the right to pull. Off by default.
 * Unlike upstream, also on containers for debugging: they would be the way around it.
 * Upstream: plugin/pkg/admission/alwayspullimages.
 */
import type { Container, EphemeralContainer, Pod, PodSpec } from '#api/gen/types/core.v1'
import { FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { aggregateReasons } from '../../core/reasons.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, plainError, refuse } from '../attributes.ts'

const always = 'Always'

export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
  admit(attributes) {
    if (!concerns(attributes)) return
    const { spec } = objectOf<Pod>(attributes)
    for (const { container } of containersOf(spec)) container.imagePullPolicy = always
    for (const { image } of spec.volumes ?? []) if (image) image.pullPolicy = always
  },
  validate(attributes) {
    if (!concerns(attributes)) return
    const { spec } = objectOf<Pod>(attributes)
    const policies = [
      ...containersOf(spec).map(({ container, path }) => ({ path: path.child('imagePullPolicy'), policy: container.imagePullPolicy })),
      ...(spec.volumes ?? []).flatMap(({ image }, index) =>
        image ? [{ path: FieldPath.of('spec', 'volumes').index(index).child('image', 'pullPolicy'), policy: image.pullPolicy }] : [],
      ),
    ]
    const texts = policies
      .filter(({ policy }) => policy !== always)
      .map(({ path, policy }) => fieldError.notSupported(path, policy ?? '', [always]))
      .map(({ field, body }) => refuse(attributes, `${field}: ${body}`).message)
    if (texts.length > 0) throw plainError(aggregateReasons(texts))
  },
}

/** True for pods with images; an update without a new image is skipped. */
function concerns(attributes: AdmissionAttributes): boolean {
  if (!isResource(attributes, '', 'pods') && !isSubresource(attributes, '', 'pods', 'ephemeralcontainers')) return false
  const { operation, oldObject } = attributes
  if (operation !== 'UPDATE' || !oldObject) return true
  const known = new Set(containersOf((oldObject as Frozen<Pod>).spec as PodSpec).map(({ container }) => container.image))
  return containersOf(objectOf<Pod>(attributes).spec).some(({ container }) => !known.has(container.image))
}

function containersOf(spec: PodSpec): readonly { readonly container: Container | EphemeralContainer; readonly path: FieldPath }[] {
  const fields = ['initContainers', 'containers', 'ephemeralContainers'] as const
  return fields.flatMap((field) => (spec[field] ?? []).map((container, index) => ({ container, path: FieldPath.of('spec', field).index(index) })))
}
