/** EndpointSlice (L1). Upstream: pkg/registry/discovery/endpointslice, pkg/apis/discovery/{v1/defaults,validation} (v1.36). */
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipWarnings, validateFullyQualifiedDomainName, validateLooseIp } from '#api/machinery/formats'
import { ipFamily } from '#api/machinery/ip'
import { validateLabels } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain, isLabelValue, isQualifiedName } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { specialAddressFaults } from '../core/serviceRules.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'

const shown = 3
const maxEndpoints = 1000
const maxAddresses = 100
const maxPorts = 20_000
const maxTopologyLabels = 16
const maxHints = 8

export const endpointSlice = defineKind<EndpointSlice>({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  generationCountsLabels: true,
  columns: [
    nameColumn,
    text('AddressType', (obj) => obj.addressType ?? ''),
    text('Ports', portsText),
    text('Endpoints', (obj) => listed((obj.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []))),
    ageColumn,
  ],
  defaults(obj) {
    for (const port of obj.ports ?? []) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
  prepareForCreate: ({ obj }) => dropTopology(obj),
  prepareForUpdate({ obj, old }) {
    if (!semanticEqual(obj.endpoints, old.endpoints)) dropTopology(obj, old)
  },
  validate: ({ obj, path }) => [...typeFaults(obj, path), ...endpointsFaults(obj, path), ...portFaults(obj, path)],
  // Addresses that were let in by looser rules may stay.
  validateUpdate: ({ obj, old, path }) => [
    ...typeFaults(obj, path),
    ...(semanticEqual(obj.endpoints, old.endpoints) ? [] : endpointsFaults(obj, path)),
    ...portFaults(obj, path),
    ...validateImmutable(obj.addressType, old.addressType, path.child('addressType')),
  ],
  warnings({ obj, path }, old) {
    // The path is upstream's, which looks for the field in a spec.
    const byName = !old && obj.addressType === 'FQDN' ? [`${path.child('spec', 'addressType')}: FQDN endpoints are deprecated`] : []
    return [...byName, ...addressWarnings(obj, path.child('endpoints'))]
  },
})

/** What the controllers write needs no look: they spell addresses as they should be spelled. */
const controllers = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']

function addressWarnings({ metadata, addressType, endpoints = [] }: EndpointSlice, path: FieldPath): string[] {
  if (addressType === 'FQDN' || controllers.includes(metadata.labels?.['endpointslice.kubernetes.io/managed-by'] ?? '')) return []
  return endpoints.flatMap(({ addresses = [] }, i) => addresses.flatMap((address, j) => ipWarnings(address, path.index(i).child('addresses').index(j))))
}

/** A field of older versions: in v1 it is there to be read only. A node that was named in it is kept in the field that came after it. */
function dropTopology(obj: EndpointSlice, old?: Frozen<EndpointSlice>): void {
  const nodes = new Set((old?.endpoints ?? []).map(({ deprecatedTopology }) => deprecatedTopology?.[hostnameLabel]))
  for (const endpoint of obj.endpoints ?? []) {
    const node = endpoint.deprecatedTopology?.[hostnameLabel]
    if (endpoint.nodeName === undefined && node && nodes.has(node) && isDns1123Subdomain(node).length === 0) endpoint.nodeName = node
    delete endpoint.deprecatedTopology
  }
}

const hostnameLabel = 'kubernetes.io/hostname'

function portsText(obj: Frozen<EndpointSlice>): string {
  return listed((obj.ports ?? []).map(({ port, name }) => (port !== undefined ? String(port) : name || '*')))
}

function listed(items: readonly string[]): string {
  if (items.length === 0) return unset
  const head = items.slice(0, shown).join(',')
  return items.length > shown ? `${head} + ${items.length - shown} more...` : head
}

function typeFaults(obj: EndpointSlice, path: FieldPath): FieldError[] {
  return oneOf(obj.addressType, ['FQDN', 'IPv4', 'IPv6'], path.child('addressType'))
}

function portFaults(obj: EndpointSlice, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const ports = obj.ports ?? []
  if (ports.length > maxPorts) return [fieldError.tooMany(path.child('ports'), ports.length, maxPorts)]
  const names = new Set<string>()
  for (const [i, port] of ports.entries()) {
    const at = path.child('ports').index(i)
    const name = port.name ?? ''
    if (name) errors.push(...faults(at.child('name'), name, isDns1123Label(name)))
    if (names.has(name)) errors.push(fieldError.duplicate(at.child('name'), name))
    names.add(name)
    errors.push(...oneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], at.child('protocol')))
    if (port.appProtocol !== undefined) errors.push(...faults(at.child('appProtocol'), port.appProtocol, isQualifiedName(port.appProtocol)))
  }
  return errors
}

function endpointsFaults(obj: EndpointSlice, path: FieldPath): FieldError[] {
  const endpoints = obj.endpoints ?? []
  if (endpoints.length > maxEndpoints) return [fieldError.tooMany(path.child('endpoints'), endpoints.length, maxEndpoints)]
  return endpoints.flatMap((endpoint, i) => endpointFaults(endpoint, obj.addressType, path.child('endpoints').index(i)))
}

function endpointFaults(endpoint: Endpoint, type: string, path: FieldPath): FieldError[] {
  const at = path.child('addresses')
  const addresses = endpoint.addresses ?? []
  const errors: FieldError[] = []
  if (addresses.length === 0) errors.push(fieldError.required(at, 'must contain at least 1 address'))
  else if (addresses.length > maxAddresses) errors.push(fieldError.tooMany(at, addresses.length, maxAddresses))
  for (const [i, address] of addresses.entries()) errors.push(...addressFaults(address, type, at.index(i)))
  if (endpoint.nodeName !== undefined) errors.push(...faults(path.child('nodeName'), endpoint.nodeName, isDns1123Subdomain(endpoint.nodeName)))
  const topology = endpoint.deprecatedTopology ?? {}
  const labels = path.child('deprecatedTopology')
  if (Object.keys(topology).length > maxTopologyLabels) errors.push(fieldError.tooMany(labels, Object.keys(topology).length, maxTopologyLabels))
  errors.push(...validateLabels(topology, labels))
  if (endpoint.hostname !== undefined) errors.push(...faults(path.child('hostname'), endpoint.hostname, isDns1123Label(endpoint.hostname)))
  const hints = path.child('hints')
  return [
    ...errors,
    ...hintFaults(endpoint.hints?.forZones, isLabelValue, hints.child('forZones')),
    ...hintFaults(endpoint.hints?.forNodes, isDns1123Subdomain, hints.child('forNodes')),
  ]
}

function addressFaults(address: string, type: string, path: FieldPath): FieldError[] {
  if (type === 'FQDN') return validateFullyQualifiedDomainName(address, path)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const errors = validateLooseIp(address, path)
  if (errors.length > 0) return errors
  const family = ipFamily(address) === (type === 'IPv4' ? 4 : 6) ? [] : [fieldError.invalid(path, address, `must be an ${type} address`)]
  return [...family, ...specialAddressFaults(address, path)]
}

function hintFaults(hints: readonly { readonly name: string }[] | undefined, check: (name: string) => readonly string[], path: FieldPath): FieldError[] {
  if ((hints?.length ?? 0) > maxHints) return [fieldError.tooMany(path, hints?.length ?? 0, maxHints)]
  const seen = new Set<string>()
  return (hints ?? []).flatMap(({ name }, i) => {
    const at = path.index(i).child('name')
    const repeated = seen.has(name) ? [fieldError.duplicate(at, name)] : []
    seen.add(name)
    return [...repeated, ...faults(at, name, check(name))]
  })
}
