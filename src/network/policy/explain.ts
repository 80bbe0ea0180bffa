/**
 * Why the policies of two pods allow a connection or not (L3), pure. The decision is that of the kernel's rules: the terms are the same ones; each rule is tried
 * alone, so that the answer can name it.
 */
import type { ConnectionEnd, ConnectionQuestion, ConnectionVerdict, PolicyCheck, PolicyExplanation, PolicyQuestion } from '#api/debug/networkPolicy'
import type { LabelMap } from '#api/machinery/labelSelector'
import { type CompiledPolicy, compilePolicy, type Direction } from './compilePolicy.ts'
import { familyOf, type PodFacts, podFactsOf, protocolOf } from './facts.ts'
import { complete } from './model.ts'
import { PeerGroup } from './peerGroup.ts'
import { ruleTexts } from './ruleTexts.ts'
import { type Connection, type GroupOf, termMatches, termsOf } from './terms.ts'

interface End {
  readonly name: string
  readonly addresses: readonly string[]
  /** Absent for an address, and for a pod on the network of its node. */
  readonly pod?: PodFacts | undefined
  /** Addresses of the node that runs the pod. */
  readonly nodeAddresses: readonly string[]
}

/** What decides about one port of one pair of addresses. */
interface Packet {
  readonly connection: Connection
  readonly ends: Readonly<Record<Direction, End>>
}

export function explainPolicies({ pod, connection, policies, namespaces }: PolicyQuestion): PolicyExplanation {
  const compiled = policies.map((policy) => ({ policy, compiled: complete(compilePolicy(policy)) }))
  const facts = podFactsOf(pod)
  const ownPolicies = (direction: Direction) =>
    pod.spec.hostNetwork
      ? []
      : compiled
          .filter((one) => selects(one.compiled, direction, facts))
          .map(({ policy, compiled: { obstacle } }) => ({
            policy: nameOf(policy),
            rules: ruleTexts(policy, direction),
            ...(obstacle === undefined ? {} : { obstacle }),
          }))
  const labels = new Map(namespaces.map(({ metadata }) => [metadata.name ?? '', metadata.labels ?? {}]))
  const verdictOf = createVerdicts(
    compiled.map((one) => one.compiled),
    labels,
  )
  return {
    pod: facts.key,
    addresses: pod.spec.hostNetwork ? addressesOf(pod) : facts.addresses,
    node: pod.spec.nodeName,
    hostNetwork: pod.spec.hostNetwork ?? false,
    selectedBy: { ingress: ownPolicies('ingress'), egress: ownPolicies('egress') },
    verdicts: connection ? verdictsOf(connection, verdictOf) : [],
  }
}

const nameOf = ({ metadata }: PolicyQuestion['policies'][number]) => `${metadata.namespace}/${metadata.name}`

function selects({ namespace, target, rules }: CompiledPolicy, direction: Direction, pod: PodFacts): boolean {
  return rules[direction] !== undefined && namespace === pod.namespace && target.matches(pod.labels)
}

function verdictsOf({ source, destination, ports }: ConnectionQuestion, verdictOf: (packet: Packet) => readonly PolicyCheck[]): ConnectionVerdict[] {
  const ends = { egress: endOf(source), ingress: endOf(destination) }
  const [from, to] = pairOf(ends.egress.addresses, ends.ingress.addresses)
  return ports.map(({ protocol, port }) => {
    const checks = verdictOf({ ends, connection: { source: from, destination: to, protocol: protocolOf(protocol) ?? 'tcp', port } })
    return { source: ends.egress.name, destination: ends.ingress.name, protocol, port, allowed: checks.every(({ allowed }) => allowed), checks }
  })
}

function endOf(end: ConnectionEnd): End {
  if ('address' in end) return { name: end.address, addresses: [end.address], nodeAddresses: [] }
  const { pod } = end
  const facts = podFactsOf(pod)
  const nodeAddresses = pod.status?.hostIPs?.map(({ ip }) => ip) ?? (pod.status?.hostIP ? [pod.status.hostIP] : [])
  if (pod.spec.hostNetwork) return { name: facts.key, addresses: addressesOf(pod), nodeAddresses }
  return { name: facts.key, addresses: facts.addresses, pod: facts, nodeAddresses }
}

function addressesOf({ status }: PolicyQuestion['pod']): readonly string[] {
  return status?.podIPs?.map(({ ip }) => ip) ?? (status?.podIP ? [status.podIP] : [])
}

/** The first two addresses of one family; '' for a pod that has none yet. */
function pairOf(sources: readonly string[], destinations: readonly string[]): readonly [string, string] {
  for (const source of sources) {
    const destination = destinations.find((one) => familyOf(one) === familyOf(source))
    if (destination !== undefined) return [source, destination]
  }
  return [sources[0] ?? '', destinations[0] ?? '']
}

function createVerdicts(policies: readonly CompiledPolicy[], namespaces: ReadonlyMap<string, LabelMap>) {
  const check = (direction: Direction, { ends, connection }: Packet): PolicyCheck => {
    const end = ends[direction]
    const peer = ends[direction === 'ingress' ? 'egress' : 'ingress']
    const answer = (because: PolicyCheck['because'], allowed: boolean, decided: PolicyCheck['policies'] = []) => ({
      direction,
      of: end.name,
      allowed,
      because,
      policies: decided,
    })
    const { pod } = end
    if (!pod) return answer('noPod', true)
    if (peer.pod?.key === pod.key) return answer('itself', true)
    if (!peer.pod && peer.addresses.some((address) => end.nodeAddresses.includes(address))) return answer('ownNode', true)
    const isolating = policies.filter((policy) => selects(policy, direction, pod))
    if (isolating.length === 0) return answer('notIsolated', true)
    const groupOf = groupsOf([ends.egress.pod, ends.ingress.pod], namespaces)
    const decided = isolating.map((policy) => ({ policy: policy.key, rules: matchingRules(policy, direction, connection, groupOf) }))
    return answer(
      'policies',
      decided.some(({ rules }) => rules.length > 0),
      decided,
    )
  }
  return (packet: Packet) => [check('egress', packet), check('ingress', packet)]
}

/** Groups that hold no other pods than these. */
function groupsOf(pods: readonly (PodFacts | undefined)[], namespaces: ReadonlyMap<string, LabelMap>): GroupOf {
  return (selector, port) => {
    const group = new PeerGroup(0, selector, port)
    for (const pod of pods) if (pod && group.selects(pod, namespaces.get(pod.namespace))) group.add(pod)
    return group
  }
}

/** @returns their numbers, from 1 */
function matchingRules(policy: CompiledPolicy, direction: Direction, connection: Connection, groupOf: GroupOf): number[] {
  return (policy.rules[direction] ?? []).flatMap((rule, index) => {
    const terms = termsOf({ ...policy, rules: { [direction]: [rule] } }, direction, groupOf)
    return terms.some((term) => termMatches(term, direction, connection)) ? [index + 1] : []
  })
}
