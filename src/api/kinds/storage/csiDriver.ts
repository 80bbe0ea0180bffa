/** CSIDriver (L1). Upstream: pkg/registry/storage/csidriver, pkg/apis/storage/{v1/defaults,validation} (v1.36). */
import type { CSIDriver, TokenRequest } from '#api/gen/types/storage.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, boolean, nameColumn, none, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'

const fsGroupPolicies = ['File', 'None', 'ReadWriteOnceWithFSType']
const lifecycleModes = ['Persistent', 'Ephemeral']
const minTokenSeconds = 600
const maxTokenSeconds = 2 ** 32
const minUpdatePeriodSeconds = 10

export const csiDriver = defineKind<CSIDriver>({
  group: 'storage.k8s.io',
  kind: 'CSIDriver',
  allowUnconditionalUpdate: false,
  columns: [
    nameColumn,
    boolean('AttachRequired', (obj) => obj.spec?.attachRequired ?? true),
    boolean('PodInfoOnMount', (obj) => obj.spec?.podInfoOnMount ?? false),
    boolean('StorageCapacity', (obj) => obj.spec?.storageCapacity ?? false),
    text('TokenRequests', (obj) => (obj.spec?.tokenRequests ?? []).map((request) => request.audience).join(',') || unset),
    boolean('RequiresRepublish', (obj) => obj.spec?.requiresRepublish ?? false),
    text('Modes', (obj) => (obj.spec?.volumeLifecycleModes ?? []).join(',') || none),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.spec.attachRequired ??= true
    obj.spec.podInfoOnMount ??= false
    obj.spec.storageCapacity ??= false
    obj.spec.requiresRepublish ??= false
    obj.spec.seLinuxMount ??= false
    obj.spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType'
    if (!obj.spec.volumeLifecycleModes?.length) obj.spec.volumeLifecycleModes = ['Persistent']
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    // Upstream's path has a letter too many; tools match on it.
    ...validateImmutable(obj.spec.attachRequired, old.spec.attachRequired, path.child('spec', 'attachedRequired')),
    ...validateImmutable(obj.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes, path.child('spec', 'volumeLifecycleModes')),
  ],
})

function specFaults({ spec }: CSIDriver, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (spec.fsGroupPolicy !== undefined && !fsGroupPolicies.includes(spec.fsGroupPolicy))
    errors.push(fieldError.notSupported(path.child('fsGroupPolicy'), spec.fsGroupPolicy, fsGroupPolicies))
  errors.push(...tokenRequestFaults(spec.tokenRequests ?? [], path.child('tokenRequests')))
  for (const mode of spec.volumeLifecycleModes ?? [])
    if (!lifecycleModes.includes(mode)) errors.push(fieldError.notSupported(path.child('volumeLifecycleModes'), mode, lifecycleModes))
  const period = spec.nodeAllocatableUpdatePeriodSeconds
  if (period !== undefined && period < minUpdatePeriodSeconds)
    errors.push(fieldError.invalid(path.child('nodeAllocatableUpdatePeriodSeconds'), period, 'must be greater than or equal to 10 seconds'))
  const inSecrets = spec.serviceAccountTokenInSecrets
  if (inSecrets !== undefined && !spec.tokenRequests?.length) {
    const why = 'serviceAccountTokenInSecrets is set but no tokenRequests are specified'
    errors.push(fieldError.invalid(path.child('serviceAccountTokenInSecrets'), inSecrets, why))
  }
  if (spec.preventPodSchedulingIfMissing !== undefined) {
    const why = 'preventPodSchedulingIfMissing requires the VolumeLimitScaling feature gate to be enabled'
    errors.push(fieldError.forbidden(path.child('preventPodSchedulingIfMissing'), why))
  }
  return errors
}

function tokenRequestFaults(requests: readonly TokenRequest[], path: FieldPath): FieldError[] {
  const audiences = new Set<string>()
  return requests.flatMap(({ audience, expirationSeconds }, i) => {
    const at = path.index(i)
    if (audiences.has(audience)) return [fieldError.duplicate(at.child('audience'), audience)]
    audiences.add(audience)
    if (expirationSeconds === undefined) return []
    const seconds = at.child('expirationSeconds')
    if (expirationSeconds < minTokenSeconds) return [fieldError.invalid(seconds, expirationSeconds, 'may not specify a duration less than 10 minutes')]
    if (expirationSeconds > maxTokenSeconds) return [fieldError.invalid(seconds, expirationSeconds, 'may not specify a duration larger than 2^32 seconds')]
    return []
  })
}
