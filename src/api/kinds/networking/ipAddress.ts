/** IPAddress (L1): one object for each address that is taken, named after it. Upstream: pkg/registry/networking/ipaddress (v1.36). */
import type { IPAddress } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isCanonicalIp } from '#api/machinery/formats'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain, isPathSegmentName } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'

export const ipAddress = defineKind<IPAddress>({
  group: 'networking.k8s.io',
  kind: 'IPAddress',
  generation: false,
  // The name is the address itself, in its canonical form.
  validateName: (name) => isCanonicalIp(name),
  columns: [nameColumn, text('ParentRef', parentText)],
  validate: ({ obj, path }) => parentFaults(obj, path.child('spec', 'parentRef')),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec?.parentRef, old.spec?.parentRef, path.child('spec', 'parentRef')),
})

function parentText(obj: Frozen<IPAddress>): string {
  const ref = obj.spec?.parentRef
  if (!ref) return none
  const resource = ref.group ? `${ref.resource}.${ref.group}` : ref.resource
  return ref.namespace ? `${resource}/${ref.namespace}/${ref.name}` : `${resource}/${ref.name}`
}

function parentFaults(obj: IPAddress, path: FieldPath): FieldError[] {
  const ref = obj.spec?.parentRef
  if (!ref) return [fieldError.required(path)]
  const errors = ref.group ? faults(path.child('group'), ref.group, isDns1123Subdomain(ref.group)) : []
  for (const field of ['resource', 'name'] as const) {
    if (!ref[field]) errors.push(fieldError.required(path.child(field)))
    else errors.push(...faults(path.child(field), ref[field], isPathSegmentName(ref[field])))
  }
  if (ref.namespace) errors.push(...faults(path.child('namespace'), ref.namespace, isPathSegmentName(ref.namespace)))
  return errors
}
