/** ServiceCIDR and IPAddress (L1): the ranges of cluster IPs, and one object for each that is taken. Upstream: pkg/registry/networking (v1.36). */
import type { IPAddress, ServiceCIDR } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { formatCidr, formatIp, invalidCidrMessage, parseCidr, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

export const serviceCidr = defineKind<ServiceCIDR>({
  group: 'networking.k8s.io',
  kind: 'ServiceCIDR',
  generation: false,
  columns: [nameColumn, text('CIDRs', (obj) => (obj.spec?.cidrs ?? []).join(',')), ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => cidrFaults(obj, path.child('spec', 'cidrs')),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec?.cidrs, old.spec?.cidrs, path.child('spec', 'cidrs')),
  status: statusStrategy<ServiceCIDR>(),
})

export const ipAddress = defineKind<IPAddress>({
  group: 'networking.k8s.io',
  kind: 'IPAddress',
  generation: false,
  // The name is the address itself, in its canonical form.
  validateName(name) {
    const ip = parseIp(name)
    if (!ip) return ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']
    return formatIp(ip) === name ? [] : [`must be in canonical form (${JSON.stringify(formatIp(ip))})`]
  },
  columns: [nameColumn, text('ParentRef', parentText)],
  selectableFields: {},
  validate: ({ obj, path }) => parentFaults(obj, path.child('spec', 'parentRef')),
  validateUpdate: ({ obj, old, path }) => [
    ...parentFaults(obj, path.child('spec', 'parentRef')),
    ...validateImmutable(obj.spec.parentRef, old.spec.parentRef, path.child('spec', 'parentRef')),
  ],
})

function cidrFaults(obj: ServiceCIDR, path: FieldPath): FieldError[] {
  const cidrs = obj.spec?.cidrs ?? []
  if (cidrs.length === 0) return [fieldError.required(path, 'at least one CIDR required')]
  const errors: FieldError[] = []
  const blocks = cidrs.map(parseCidr)
  for (const [i, block] of blocks.entries()) {
    if (!block) errors.push(fieldError.invalid(path.index(i), cidrs[i], invalidCidrMessage))
    else if (formatCidr(block) !== cidrs[i])
      errors.push(fieldError.invalid(path.index(i), cidrs[i], `must be in canonical form (${JSON.stringify(formatCidr(block))})`))
  }
  if (cidrs.length > 2) errors.push(fieldError.invalid(path, cidrs, 'may only hold up to 2 values'))
  if (cidrs.length === 2 && blocks[0] && blocks[0].family === blocks[1]?.family)
    errors.push(fieldError.invalid(path, cidrs, 'may specify no more than one IP for each IP family'))
  return errors
}

function parentText(obj: Frozen<IPAddress>): string {
  const ref = obj.spec?.parentRef
  if (!ref) return '<none>'
  const resource = ref.group ? `${ref.resource}.${ref.group}` : ref.resource
  return ref.namespace ? `${resource}/${ref.namespace}/${ref.name}` : `${resource}/${ref.name}`
}

function parentFaults(obj: IPAddress, path: FieldPath): FieldError[] {
  const ref = obj.spec?.parentRef
  if (!ref) return [fieldError.required(path)]
  return (['resource', 'name'] as const).flatMap((field) => (ref[field] ? [] : [fieldError.required(path.child(field))]))
}
