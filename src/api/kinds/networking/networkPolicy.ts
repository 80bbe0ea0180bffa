/** NetworkPolicy (L1). Upstream: pkg/registry/networking/networkpolicy, pkg/apis/networking/{v1/defaults,validation} (v1.36). */
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { cidrContains, invalidCidrMessage, networkAddress, parseCidr } from '#api/machinery/ip'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { ageColumn, nameColumn, selectorText, text } from '../columns.ts'
import { validatePortNumberOrName } from '../core/pod/validateProbes.ts'
import { defineKind } from '../defineKind.ts'

export const networkPolicy = defineKind<NetworkPolicy>({
  group: 'networking.k8s.io',
  kind: 'NetworkPolicy',
  columns: [nameColumn, text('Pod-Selector', (obj) => selectorText(obj.spec?.podSelector ?? {})), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    obj.spec.podSelector ??= {}
    for (const rule of [...(obj.spec.ingress ?? []), ...(obj.spec.egress ?? [])]) for (const port of rule.ports ?? []) port.protocol ??= 'TCP'
    // A policy that says nothing of types is about ingress, and about egress when it has such rules.
    if (!obj.spec.policyTypes?.length) obj.spec.policyTypes = obj.spec.egress?.length ? ['Ingress', 'Egress'] : ['Ingress']
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
})

function specFaults({ spec }: NetworkPolicy, path: FieldPath): FieldError[] {
  const errors = validateLabelSelector(spec.podSelector, path.child('podSelector'))
  for (const [i, rule] of (spec.ingress ?? []).entries()) errors.push(...ruleFaults(rule.ports, rule.from, 'from', path.child('ingress').index(i)))
  for (const [i, rule] of (spec.egress ?? []).entries()) errors.push(...ruleFaults(rule.ports, rule.to, 'to', path.child('egress').index(i)))
  const types = spec.policyTypes ?? []
  if (types.length > 2) return [...errors, fieldError.invalid(path.child('policyTypes'), types, 'may not specify more than two policyTypes')]
  for (const [i, type] of types.entries())
    if (!['Egress', 'Ingress'].includes(type)) errors.push(fieldError.notSupported(path.child('policyTypes').index(i), type, ['Egress', 'Ingress']))
  return errors
}

function ruleFaults(
  ports: readonly NetworkPolicyPort[] | undefined,
  peers: readonly NetworkPolicyPeer[] | undefined,
  word: string,
  path: FieldPath,
): FieldError[] {
  const errors = (ports ?? []).flatMap((port, i) => portFaults(port, path.child('ports').index(i)))
  for (const [i, peer] of (peers ?? []).entries()) errors.push(...peerFaults(peer, path.child(word).index(i)))
  return errors
}

function portFaults({ port, endPort, protocol }: NetworkPolicyPort, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (protocol !== undefined && !['SCTP', 'TCP', 'UDP'].includes(protocol))
    errors.push(fieldError.notSupported(path.child('protocol'), protocol, ['SCTP', 'TCP', 'UDP']))
  if (port !== undefined) errors.push(...validatePortNumberOrName(port, path.child('port')))
  if (endPort === undefined) return errors
  if (port === undefined) errors.push(fieldError.required(path.child('port'), 'must be specified when `endPort` is specified'))
  else if (typeof port === 'string') errors.push(fieldError.invalid(path.child('endPort'), endPort, 'may not be specified when `port` is non-numeric'))
  else if (endPort < port) errors.push(fieldError.invalid(path.child('endPort'), endPort, 'must be greater than or equal to `port`'))
  return errors
}

function peerFaults(peer: NetworkPolicyPeer, path: FieldPath): FieldError[] {
  const errors = [
    ...validateLabelSelector(peer.podSelector, path.child('podSelector')),
    ...validateLabelSelector(peer.namespaceSelector, path.child('namespaceSelector')),
  ]
  if (!peer.podSelector && !peer.namespaceSelector && !peer.ipBlock) errors.push(fieldError.required(path, 'must specify a peer'))
  if (!peer.ipBlock) return errors
  if (peer.podSelector || peer.namespaceSelector) errors.push(fieldError.forbidden(path, 'may not specify both ipBlock and another peer'))
  const at = path.child('ipBlock')
  if (!peer.ipBlock.cidr) return [...errors, fieldError.required(at.child('cidr'))]
  const block = parseCidr(peer.ipBlock.cidr)
  if (!block) return [...errors, fieldError.invalid(at.child('cidr'), peer.ipBlock.cidr, invalidCidrMessage)]
  for (const [i, text] of (peer.ipBlock.except ?? []).entries()) {
    const except = parseCidr(text)
    if (!except) errors.push(fieldError.invalid(at.child('except').index(i), text, invalidCidrMessage))
    else if (!cidrContains(block, networkAddress(except)) || except.prefixLength <= block.prefixLength)
      errors.push(fieldError.invalid(at.child('except').index(i), text, `must be a strict subset of \`cidr\``))
  }
  return errors
}
