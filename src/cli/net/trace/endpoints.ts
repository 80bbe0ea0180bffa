/** The hops behind a Service (L4), pure: which endpoints there are, and for each one its node, the network policies, the route and whether it answers. */

import type { ConnectionVerdict, PolicyCheck } from '#api/debug/networkPolicy'
import type { Pod } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import { cidrContains, hostPort, parseCidr, parseIp } from '#api/machinery/ip'
import { formatLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { Destination, Hop, ServiceFacts, TraceFacts } from './facts.ts'
import { fault, nodeHop, ok, unknown } from './hops.ts'

export function endpointHops(facts: TraceFacts): Hop[] {
  const { service, destinations } = facts
  const ready = destinations.filter((one) => one.ready)
  if (!service) return destinations.flatMap((one) => destinationHops(one, facts))
  if (!service.service.found || !service.port) return []
  if (service.endpoints.notShown !== undefined) return [unknown('endpoints', `not shown: ${service.endpoints.notShown}`)]
  if (destinations.length === 0) return [withoutEndpoints(service)]
  const all = service.endpoints.found ?? []
  const shown = destinations.map(({ address, port }) => hostPort(address, port)).join(', ')
  const more = all.length > destinations.length ? ` and ${all.length - destinations.length} more` : ''
  const count = ok('endpoints', `${all.filter((one) => one.ready).length} of ${all.length} ready: ${shown}${more}`)
  // Those that are not ready get no connection while others are.
  const used = ready.length > 0 ? ready : destinations
  const behind = used.flatMap((one) => destinationHops(one, facts))
  if (ready.length > 0) return [count, ...localOnly(service, ready, facts), ...behind]
  const down = [...new Set(destinations.flatMap(({ node }) => node ?? []))].flatMap((name) => nodeHop(facts.nodes, name))
  return [...down, fault('endpoints', 'notReady', `no endpoint is ready: ${destinations.map(whyNotReady).join('; ')}`), ...behind]
}

function withoutEndpoints({ service, port, selected, others, namespace }: ServiceFacts): Hop {
  const matchLabels = service.found?.spec.selector ?? {}
  if (Object.keys(matchLabels).length === 0) return fault('endpoints', 'selector', 'the Service has no selector, and nobody has written endpoints for it')
  if (selected.notShown !== undefined) return unknown('endpoints', `none; pods are not shown: ${selected.notShown}`)
  const pods = selected.found ?? []
  if (pods.length > 0) {
    const target = port?.targetPort
    if (typeof target === 'string' && !pods.some((pod) => portsOf(pod).some(({ name }) => name === target)))
      return fault('endpoints', 'targetPort', `no container of the pods of the Service names a port "${target}"; they name: ${namesOf(pods) || 'none'}`)
    return fault(
      'endpoints',
      'notReady',
      `no pod of the Service has an address: ${pods.map((pod) => `${pod.metadata.name} is ${pod.status?.phase ?? 'Pending'}`).join(', ')}`,
    )
  }
  const labels = [...new Set((others.found ?? []).flatMap((pod) => labelsLike(pod, matchLabels)))].slice(0, 5)
  const near = labels.length > 0 ? `; pods there have ${labels.join(', ')}` : ''
  return fault(
    'endpoints',
    'selector',
    `the selector ${formatLabelSelector({ matchLabels })} of the Service matches no pod in the namespace ${namespace}${near}`,
  )
}

const portsOf = ({ spec }: Frozen<Pod>) => [...spec.containers, ...(spec.initContainers ?? [])].flatMap(({ ports = [] }) => ports)

function namesOf(pods: readonly Frozen<Pod>[]): string {
  return [...new Set(pods.flatMap((pod) => portsOf(pod).flatMap(({ name }) => name ?? [])))].join(', ')
}

/** Labels of a pod with the keys of the selector. */
function labelsLike({ metadata }: Frozen<Pod>, selector: Readonly<Record<string, string>>): string[] {
  return Object.keys(selector).flatMap((key) => {
    const value = ownValue(metadata.labels, key)
    return value === undefined ? [] : [`${key}=${value}`]
  })
}

function whyNotReady({ address, pod }: Destination): string {
  if (!pod) return address
  const name = pod.metadata.name
  if (pod.metadata.deletionTimestamp) return `${name} is being deleted`
  const waiting = pod.status?.containerStatuses?.flatMap(({ state, name: container }) => (state?.waiting ? [`${container}: ${state.waiting.reason}`] : []))
  if (waiting?.length) return `${name} waits, ${waiting.join(', ')}`
  const { message, reason } = podCondition(pod, 'Ready') ?? {}
  return `${name} is not ready${message || reason ? ` (${message || reason})` : ''}`
}

/** With a policy of Local, endpoints of other nodes do not count. */
function localOnly({ service }: ServiceFacts, ready: readonly Destination[], { pod }: TraceFacts): Hop[] {
  if (service.found?.spec.internalTrafficPolicy !== 'Local' || ready.some(({ node }) => node === pod.spec.nodeName)) return []
  return [fault('endpoints', 'notReady', `internalTrafficPolicy is Local, and no ready endpoint is on the pod's node ${pod.spec.nodeName}`)]
}

function destinationHops(to: Destination, facts: TraceFacts): Hop[] {
  const result = facts.direct.find(({ address, port }) => address === to.address && port === to.port)
  const name = nameOf(to)
  const passes = result?.outcome === 'connected'
  const hops = [...(to.node === undefined ? [] : nodeHop(facts.nodes, to.node)), policyHop(to, name), ...routeHops(to, facts)]
  if (!result) return hops
  if (passes) return [...hops, ok('endpoint', `${name} accepts connections of the pod`)]
  return [...hops, refusedHop(to, name, result.outcome)]
}

const nameOf = ({ address, port, pod }: Destination) => `${pod ? `${pod.metadata.namespace}/${pod.metadata.name} ` : ''}${hostPort(address, port)}`

function policyHop({ verdict: { found, notShown } }: Destination, name: string): Hop {
  if (!found) return unknown('policies', `${name}: not shown: ${notShown ?? 'the pod is unknown'}`)
  if (found.allowed) return ok('policies', `${name}: allowed`)
  return fault('policies', 'policy', `network policies deny ${name}: ${deniedBy(found).join('; ')}`)
}

function deniedBy({ checks }: Frozen<ConnectionVerdict>): string[] {
  return checks
    .filter(({ allowed }) => !allowed)
    .map(({ direction, of, policies }: Frozen<PolicyCheck>) => `${direction} of ${of} by ${policies.map(({ policy }) => policy).join(', ')}`)
}

/** The way there on the node of the source, and the way back on that of the destination. */
function routeHops(to: Destination, { pod, routes }: TraceFacts): Hop[] {
  const from = pod.spec.nodeName
  if (to.node === undefined || from === undefined || to.node === from || to.pod?.spec.hostNetwork) return []
  const back = pod.spec.hostNetwork ? undefined : pod.status?.podIP
  return [...routeHop(routes, from, to.address), ...(back === undefined ? [] : routeHop(routes, to.node, back))]
}

function routeHop(routes: TraceFacts['routes'], node: string, address: string): Hop[] {
  const { found, notShown } = routes.get(node) ?? {}
  if (!found) return [unknown('route', `of ${node} to ${address}: not shown: ${notShown ?? 'the node is unknown'}`)]
  if (!found.routes) return [unknown('route', `of ${node} to ${address}: ${found.note ?? 'not shown'}`)]
  const leading = found.routes
    .filter(({ cidr }) => covers(cidr, address))
    .sort((a, b) => lengthOf(b.cidr) - lengthOf(a.cidr) || Number(a.state === 'missing') - Number(b.state === 'missing'))
  const [best] = leading.filter(({ state }) => state !== 'missing')
  if (best?.state === 'present') return [ok('route', `${node} to ${address}: ${best.cidr} via ${best.via} dev ${best.device}`)]
  if (best?.state === 'foreign')
    return [
      fault('route', 'route', `a route that Skiff did not make leads ${address} astray on ${node}: ${best.cidr} ${best.via ?? ''} ${best.device ?? ''}`.trim()),
    ]
  const missing = leading[0]
  return [fault('route', 'route', `the node ${node} has no route to ${address}${missing ? `: ${missing.cidr} via ${missing.via} is missing` : ''}`)]
}

function covers(cidr: string, address: string): boolean {
  const [block, ip] = [parseCidr(cidr), parseIp(address)]
  return ip !== undefined && (block ? cidrContains(block, ip) : cidr === address)
}

function lengthOf(cidr: string): number {
  return parseCidr(cidr)?.prefixLength ?? 128
}

function refusedHop({ pod, port }: Destination, name: string, outcome: string): Hop {
  if (outcome !== 'ECONNREFUSED' || !pod) return fault('endpoint', 'connection', `${name} does not answer: ${outcome}`)
  const declared = portsOf(pod).map(({ containerPort }) => containerPort)
  const more = declared.includes(port) ? 'although a container declares it' : `its containers declare: ${declared.join(', ') || 'none'}`
  return fault('endpoint', 'targetPort', `nothing listens on port ${port} of the pod ${pod.metadata.namespace}/${pod.metadata.name}; ${more}`)
}
