/**
 * ServiceCIDR (L1): a range that cluster IPs come from. Its conditions and finalizer are the API server's and the controller's.
 * Upstream: pkg/registry/networking/servicecidr, pkg/apis/networking/validation (v1.36).
 */
import type { ServiceCIDR } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateCidr } from '#api/machinery/formats'
import { parseCidr } from '#api/machinery/ip'
import { immutableMessage } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'

export const serviceCidr = defineKind<ServiceCIDR>({
  group: 'networking.k8s.io',
  kind: 'ServiceCIDR',
  generation: false,
  columns: [nameColumn, text('CIDRs', (obj) => (obj.spec?.cidrs ?? []).join(',')), ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => cidrFaults(obj, path.child('spec', 'cidrs')),
  validateUpdate: changeFaults,
  status: statusStrategy<ServiceCIDR>({ keepMetadata: resetMetadata }),
})

function cidrFaults(obj: ServiceCIDR, path: FieldPath): FieldError[] {
  const cidrs = obj.spec?.cidrs ?? []
  if (cidrs.length === 0) return [fieldError.required(path, 'at least one CIDR required')]
  if (cidrs.length > 2) return [fieldError.invalid(path, obj.spec, 'may only hold up to 2 values')]
  const errors = cidrs.flatMap((text, i) => validateCidr(text, path.index(i)))
  const [first, second] = cidrs.map(parseCidr)
  if (first && second && first.family === second.family) {
    const why = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'
    errors.push(fieldError.invalid(path, cidrs, why))
  }
  return errors
}

/** A range stays; a second one of the other family may be added. */
function changeFaults({ obj, old, path: root }: UpdateInput<ServiceCIDR>): FieldError[] {
  const path = root.child('spec', 'cidrs')
  const before = old.spec?.cidrs ?? []
  const after = obj.spec?.cidrs ?? []
  const added = before.length === 1 && after.length === 2
  if (before.length !== after.length && !added) return [fieldError.invalid(path, after, immutableMessage)]
  const changed = before.flatMap((text, i) => (text === after[i] ? [] : [fieldError.invalid(path.index(i), after[i], immutableMessage)]))
  return added ? [...changed, ...cidrFaults(obj, path)] : changed
}
