/** Endpoints (L1), the older API of EndpointSlices. Upstream: pkg/registry/core/endpoint, pkg/apis/core/validation (v1.36). */
import type { Endpoints } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipWarnings } from '#api/machinery/formats'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain, isPortNumber } from '#api/machinery/names'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'
import { repackSubsets } from './endpointSubsets.ts'
import { specialAddressFaults } from './serviceRules.ts'

const shown = 3

export const endpoints = defineKind<Endpoints>({
  group: '',
  kind: 'Endpoints',
  generation: false,
  allowCreateOnUpdate: true,
  columns: [nameColumn, text('Endpoints', endpointsText), ageColumn],
  defaults(obj) {
    for (const subset of obj.subsets ?? []) for (const port of subset.ports ?? []) port.protocol ||= 'TCP'
  },
  validate: ({ obj, path }) => subsetFaults(obj, path.child('subsets')),
  // Addresses that were let in by looser rules may stay.
  validateUpdate: ({ obj, old, path }) => (semanticEqual(obj.subsets, old.subsets) ? [] : subsetFaults(obj, path.child('subsets'))),
  warnings: ({ obj, path }) => addressWarnings(obj, path.child('subsets')),
  canonicalize(obj) {
    if (obj.subsets) obj.subsets = repackSubsets(obj.subsets)
  },
})

function addressWarnings({ metadata, subsets = [] }: Endpoints, path: FieldPath): string[] {
  // The controller spells addresses as they should be spelled.
  if (metadata.labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller') return []
  return subsets.flatMap((subset, i) =>
    (['addresses', 'notReadyAddresses'] as const).flatMap((list) =>
      (subset[list] ?? []).flatMap(({ ip }, j) => ipWarnings(ip, path.index(i).child(list).index(j).child('ip'))),
    ),
  )
}

function endpointsText(obj: Frozen<Endpoints>): string {
  const all = (obj.subsets ?? []).flatMap((subset) => {
    const addresses = subset.addresses ?? []
    const host = (ip: string) => (ip.includes(':') ? `[${ip}]` : ip)
    if (!subset.ports?.length) return addresses.map(({ ip }) => ip)
    return subset.ports.flatMap(({ port }) => addresses.map(({ ip }) => `${host(ip)}:${port}`))
  })
  if (all.length === 0) return none
  const head = all.slice(0, shown).join(',')
  return all.length > shown ? `${head} + ${all.length - shown} more...` : head
}

function subsetFaults(obj: Endpoints, path: FieldPath): FieldError[] {
  return (obj.subsets ?? []).flatMap((subset, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!subset.addresses?.length && !subset.notReadyAddresses?.length) errors.push(fieldError.required(at, 'must specify `addresses` or `notReadyAddresses`'))
    for (const list of ['addresses', 'notReadyAddresses'] as const) {
      for (const [j, address] of (subset[list] ?? []).entries()) {
        const one = at.child(list).index(j)
        errors.push(...specialAddressFaults(address.ip, one.child('ip')))
        if (address.hostname) errors.push(...faults(one.child('hostname'), address.hostname, isDns1123Label(address.hostname)))
        if (address.nodeName !== undefined) errors.push(...faults(one.child('nodeName'), address.nodeName, isDns1123Subdomain(address.nodeName)))
      }
    }
    for (const [j, port] of (subset.ports ?? []).entries()) {
      const one = at.child('ports').index(j)
      if (!port.name) {
        if ((subset.ports ?? []).length > 1) errors.push(fieldError.required(one.child('name')))
      } else errors.push(...faults(one.child('name'), port.name, isDns1123Label(port.name)))
      errors.push(...faults(one.child('port'), port.port, isPortNumber(port.port)), ...oneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], one.child('protocol')))
    }
    return errors
  })
}
