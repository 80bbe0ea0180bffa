/** NetworkPolicy (L1). Upstream: pkg/registry/networking/networkpolicy, pkg/apis/networking/{v1/defaults,validation} (v1.36). */
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#api/gen/types/networking.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { cidrWarnings, validateLooseCidr } from '#api/machinery/formats'
import { cidrContains, networkAddress, parseCidr } from '#api/machinery/ip'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isPortName, isPortNumber } from '#api/machinery/names'
import { ageColumn, nameColumn, selectorText, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'

const protocols = ['TCP', 'UDP', 'SCTP']
const directions = ['Ingress', 'Egress']

export const networkPolicy = defineKind<NetworkPolicy>({
  group: 'networking.k8s.io',
  kind: 'NetworkPolicy',
  columns: [nameColumn, text('Pod-Selector', (obj) => selectorText(obj.spec?.podSelector ?? {})), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    for (const rule of [...(obj.spec.ingress ?? []), ...(obj.spec.egress ?? [])]) for (const port of rule.ports ?? []) port.protocol ??= 'TCP'
    // A policy without types applies to ingress, and to egress if it has egress rules.
    if (!obj.spec.policyTypes?.length) obj.spec.policyTypes = obj.spec.egress?.length ? ['Ingress', 'Egress'] : ['Ingress']
  },
  validate: ({ obj, path }) => specFaults(obj, [], path.child('spec')),
  validateUpdate: ({ obj, old, path }) => specFaults(obj, blocksOf(old), path.child('spec')),
  warnings({ obj, path }, old) {
    if (old && semanticEqual(obj.spec, old.spec)) return []
    return [...(obj.spec?.ingress ?? []).entries()]
      .flatMap(([i, rule]) => peerWarnings(rule.from, path.child('spec', 'ingress').index(i).child('from')))
      .concat([...(obj.spec?.egress ?? []).entries()].flatMap(([i, rule]) => peerWarnings(rule.to, path.child('spec', 'egress').index(i).child('to'))))
  },
})

/** All blocks that a policy names: on update they need no second look. */
function blocksOf({ spec }: Frozen<NetworkPolicy>): string[] {
  const peers = [...(spec?.ingress ?? []).flatMap((rule) => rule.from ?? []), ...(spec?.egress ?? []).flatMap((rule) => rule.to ?? [])]
  return peers.flatMap(({ ipBlock }) => (ipBlock ? [ipBlock.cidr, ...(ipBlock.except ?? [])] : []))
}

function peerWarnings(peers: readonly NetworkPolicyPeer[] | undefined, path: FieldPath): string[] {
  return (peers ?? []).flatMap(({ ipBlock }, i) => {
    if (!ipBlock) return []
    const at = path.index(i).child('ipBlock')
    return [...cidrWarnings(ipBlock.cidr, at.child('cidr')), ...(ipBlock.except ?? []).flatMap((text, j) => cidrWarnings(text, at.child('except').index(j)))]
  })
}

function specFaults({ spec }: NetworkPolicy, kept: readonly string[], path: FieldPath): FieldError[] {
  const errors = validateLabelSelector(spec.podSelector, path.child('podSelector'))
  for (const [i, rule] of (spec.ingress ?? []).entries()) errors.push(...ruleFaults(rule.ports, rule.from, 'from', kept, path.child('ingress').index(i)))
  for (const [i, rule] of (spec.egress ?? []).entries()) errors.push(...ruleFaults(rule.ports, rule.to, 'to', kept, path.child('egress').index(i)))
  const types = spec.policyTypes ?? []
  if (types.length > directions.length) return [...errors, fieldError.invalid(path.child('policyTypes'), types, 'may not specify more than two policyTypes')]
  for (const [i, type] of types.entries())
    if (!directions.includes(type)) errors.push(fieldError.notSupported(path.child('policyTypes').index(i), type, directions))
  return errors
}

function ruleFaults(
  ports: readonly NetworkPolicyPort[] | undefined,
  peers: readonly NetworkPolicyPeer[] | undefined,
  word: string,
  kept: readonly string[],
  path: FieldPath,
): FieldError[] {
  const errors = (ports ?? []).flatMap((port, i) => portFaults(port, path.child('ports').index(i)))
  for (const [i, peer] of (peers ?? []).entries()) errors.push(...peerFaults(peer, kept, path.child(word).index(i)))
  return errors
}

function portFaults({ port, endPort, protocol }: NetworkPolicyPort, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const end = path.child('endPort')
  if (protocol !== undefined && !protocols.includes(protocol)) errors.push(fieldError.notSupported(path.child('protocol'), protocol, protocols))
  if (port === undefined) {
    if (endPort !== undefined) errors.push(fieldError.invalid(end, endPort, 'may not be specified when `port` is not specified'))
  } else if (typeof port === 'string') {
    if (endPort !== undefined) errors.push(fieldError.invalid(end, endPort, 'may not be specified when `port` is non-numeric'))
    errors.push(...faults(path.child('port'), port, isPortName(port)))
  } else {
    errors.push(...faults(path.child('port'), port, isPortNumber(port)))
    if (endPort === undefined) return errors
    if (endPort < port) errors.push(fieldError.invalid(end, endPort, 'must be greater than or equal to `port`'))
    errors.push(...faults(end, endPort, isPortNumber(endPort)))
  }
  return errors
}

function peerFaults(peer: NetworkPolicyPeer, kept: readonly string[], path: FieldPath): FieldError[] {
  const errors = [
    ...validateLabelSelector(peer.podSelector, path.child('podSelector')),
    ...validateLabelSelector(peer.namespaceSelector, path.child('namespaceSelector')),
    ...(peer.ipBlock ? blockFaults(peer.ipBlock, kept, path.child('ipBlock')) : []),
  ]
  if (!peer.podSelector && !peer.namespaceSelector && !peer.ipBlock) errors.push(fieldError.required(path, 'must specify a peer'))
  else if (peer.ipBlock && (peer.podSelector || peer.namespaceSelector))
    errors.push(fieldError.forbidden(path, 'may not specify both ipBlock and another peer'))
  return errors
}

function blockFaults({ cidr, except }: IPBlock, kept: readonly string[], path: FieldPath): FieldError[] {
  if (!cidr) return [fieldError.required(path.child('cidr'))]
  const errors = validateLooseCidr(cidr, path.child('cidr'), kept)
  const block = parseCidr(cidr)
  if (!block) return errors
  for (const [i, text] of (except ?? []).entries()) {
    const at = path.child('except').index(i)
    errors.push(...validateLooseCidr(text, at, kept))
    const inner = parseCidr(text)
    if (inner && (!cidrContains(block, networkAddress(inner)) || inner.prefixLength <= block.prefixLength))
      errors.push(fieldError.invalid(at, text, 'must be a strict subset of `cidr`'))
  }
  return errors
}
