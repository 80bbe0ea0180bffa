/** EndpointSlice (L1). Upstream: pkg/registry/discovery/endpointslice, pkg/apis/discovery/{v1/defaults,validation} (v1.36). */
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { invalidIpMessage, ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain, isPortNumber, isQualifiedName } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'

const shown = 3
const maxEndpoints = 1000
const maxAddresses = 100
const maxPorts = 20_000
const unset = '<unset>'

export const endpointSlice = defineKind<EndpointSlice>({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
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
  validate: ({ obj, path }) => sliceFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => [...sliceFaults(obj, path), ...validateImmutable(obj.addressType, old.addressType, path.child('addressType'))],
})

function portsText(obj: Frozen<EndpointSlice>): string {
  return listed((obj.ports ?? []).map(({ port, name }) => (port !== undefined ? String(port) : name || '*')))
}

function listed(items: readonly string[]): string {
  if (items.length === 0) return unset
  const head = items.slice(0, shown).join(',')
  return items.length > shown ? `${head} + ${items.length - shown} more...` : head
}

function sliceFaults(obj: EndpointSlice, path: FieldPath): FieldError[] {
  const errors = oneOf(obj.addressType, ['FQDN', 'IPv4', 'IPv6'], path.child('addressType'))
  const endpoints = obj.endpoints ?? []
  if (endpoints.length > maxEndpoints) return [...errors, fieldError.tooMany(path.child('endpoints'), endpoints.length, maxEndpoints)]
  for (const [i, endpoint] of endpoints.entries()) errors.push(...endpointFaults(endpoint, obj.addressType, path.child('endpoints').index(i)))
  const ports = obj.ports ?? []
  if (ports.length > maxPorts) return [...errors, fieldError.tooMany(path.child('ports'), ports.length, maxPorts)]
  const names = new Set<string>()
  for (const [i, port] of ports.entries()) {
    const at = path.child('ports').index(i)
    const name = port.name ?? ''
    if (name) errors.push(...faults(at.child('name'), name, isDns1123Label(name)))
    if (names.has(name)) errors.push(fieldError.duplicate(at.child('name'), name))
    names.add(name)
    if (port.port !== undefined) errors.push(...faults(at.child('port'), port.port, isPortNumber(port.port)))
    errors.push(...oneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], at.child('protocol')))
    if (port.appProtocol) errors.push(...faults(at.child('appProtocol'), port.appProtocol, isQualifiedName(port.appProtocol)))
  }
  return errors
}

function endpointFaults(endpoint: Endpoint, type: string, path: FieldPath): FieldError[] {
  const at = path.child('addresses')
  const addresses = endpoint.addresses ?? []
  const errors: FieldError[] = []
  if (addresses.length === 0) errors.push(fieldError.required(at, 'must contain at least 1 address'))
  else if (addresses.length > maxAddresses) errors.push(fieldError.tooMany(at, addresses.length, maxAddresses))
  for (const [i, address] of addresses.entries()) {
    if (type === 'FQDN') errors.push(...faults(at.index(i), address, isDns1123Subdomain(address)))
    else if (ipFamily(address) === undefined) errors.push(fieldError.invalid(at.index(i), address, invalidIpMessage))
    else if ((type === 'IPv4') !== (ipFamily(address) === 4)) errors.push(fieldError.invalid(at, address, `must be an ${type} address`))
  }
  if (endpoint.nodeName) errors.push(...faults(path.child('nodeName'), endpoint.nodeName, isDns1123Subdomain(endpoint.nodeName)))
  if (endpoint.hostname) errors.push(...faults(path.child('hostname'), endpoint.hostname, isDns1123Label(endpoint.hostname)))
  return errors
}
