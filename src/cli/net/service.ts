/** `skiff net service` (L4): a Service as the API has it, as cluster DNS answers for it, and as the proxy of each node carries it. */
import type { DnsAnswer, NetworkProbes, NodeServiceRules } from '#api/debug/nodeNetwork'
import type { Node, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { loadBalancerAddresses } from '#api/helpers/services'
import { hostPort } from '#api/machinery/ip'
import { formatLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { table } from '../commands/status.ts'
import { endpointsOf, type ShownEndpoint } from './endpoints.ts'
import { paths, type Reader, required, type Seen, slicesOf, viewOf } from './reader.ts'

export interface FoundService {
  readonly service: string
  readonly spec: Frozen<Service>['spec']
  readonly loadBalancer: readonly string[]
  readonly endpoints: Seen<readonly ShownEndpoint[]>
  readonly names: Seen<readonly DnsAnswer[]>
  readonly nodes: Seen<readonly (Seen<NodeServiceRules> & { readonly node: string })[]>
}

/** Nodes are asked by eight at once. */
const atOnce = 8
const namedPorts = 6
/** Nodes of which one has to answer about names. */
const askedForNames = 3

export async function findService(reader: Reader, namespace: string, name: string): Promise<FoundService> {
  const service = required(await reader.get<Service>(paths.service(namespace, name)), `Service ${namespace}/${name}`)
  const slices = await slicesOf<EndpointSlice>(reader, namespace, name)
  const nodes = await reader.list<Node>(paths.nodes)
  const names = (nodes.found ?? []).flatMap(({ metadata }) => metadata.name ?? [])
  return {
    service: `${namespace}/${name}`,
    spec: service.spec,
    loadBalancer: loadBalancerAddresses(service),
    endpoints: slices.found ? { found: endpointsOf(slices.found) } : { notShown: slices.notShown ?? 'there are none' },
    names: nodes.notShown === undefined ? await namesOf(reader, service, names) : { notShown: nodes.notShown },
    nodes: nodes.notShown === undefined ? { found: await rulesOf(reader, names, `${namespace}/${name}`) } : { notShown: nodes.notShown },
  }
}

async function rulesOf(reader: Reader, names: readonly string[], service: string) {
  const found: (Seen<NodeServiceRules> & { readonly node: string })[] = []
  for (let at = 0; at < names.length; at += atOnce)
    found.push(
      ...(await Promise.all(
        names.slice(at, at + atOnce).map(async (node) => ({ node, ...(await viewOf<NodeServiceRules>(reader, 'servicerules', node, { service })) })),
      )),
    )
  return found
}

/** What cluster DNS answers to the first node that can ask. */
async function namesOf(reader: Reader, service: Frozen<Service>, nodes: readonly string[]): Promise<Seen<readonly DnsAnswer[]>> {
  let last: Seen<NetworkProbes> = { notShown: 'there are no nodes' }
  for (const node of nodes.slice(0, askedForNames)) {
    last = await viewOf<NetworkProbes>(reader, 'networkprobes', node)
    const [zone] = last.found?.resolver?.searches ?? []
    if (zone === undefined) continue
    const whole = `${service.metadata.name}.${service.metadata.namespace}.${zone}`
    const ports = (service.spec.ports ?? []).filter(({ name }) => name).slice(0, namedPorts)
    const questions = [`A/${whole}`, `AAAA/${whole}`, ...ports.map(({ name, protocol = 'TCP' }) => `SRV/_${name}._${protocol.toLowerCase()}.${whole}`)]
    last = await viewOf<NetworkProbes>(reader, 'networkprobes', node, { resolve: questions })
    if (last.found?.answers) return { found: last.found.answers }
  }
  return { notShown: last.notShown ?? last.found?.note ?? 'no node can ask cluster DNS' }
}

export function describeService({ service, spec, loadBalancer, endpoints, names, nodes }: FoundService): string {
  const { sessionAffinity, externalTrafficPolicy, trafficDistribution, loadBalancerClass } = spec
  const facts = [
    ['service:', service],
    ['type:', spec.type ?? 'ClusterIP'],
    ['addresses:', [...(spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : [])), ...(spec.externalIPs ?? [])].join(', ') || spec.externalName || 'none'],
    ...(spec.type === 'LoadBalancer'
      ? [['load balancer:', `${loadBalancer.join(', ') || 'none yet'}${loadBalancerClass ? ` (class ${loadBalancerClass})` : ''}`]]
      : []),
    ['selector:', spec.selector ? formatLabelSelector({ matchLabels: spec.selector }) : 'none'],
    ['internal traffic:', spec.internalTrafficPolicy ?? 'Cluster'],
    ...(externalTrafficPolicy ? [['external traffic:', externalTrafficPolicy]] : []),
    ...(trafficDistribution ? [['distribution:', trafficDistribution]] : []),
    ...(sessionAffinity === 'ClientIP' ? [['affinity:', 'ClientIP']] : []),
  ]
  const ports = (spec.ports ?? []).map(({ name = '', protocol = 'TCP', port, targetPort, nodePort }) => [
    name || '-',
    `${port}/${protocol}`,
    String(targetPort ?? port),
    String(nodePort ?? '-'),
  ])
  return [
    table(facts),
    table([['PORT NAME', 'PORT', 'TARGET PORT', 'NODE PORT'], ...ports]),
    section('endpoints', endpoints, endpointTable),
    section('names', names, nameTable),
    section('rules', nodes, (found) => found.map(nodeText).join('')),
  ].join('\n')
}

function section<T>(title: string, { found, notShown }: Seen<readonly T[]>, textOf: (found: readonly Frozen<T>[]) => string): string {
  if (!found) return `${title}: not shown: ${notShown}\n`
  return found.length === 0 ? `${title}: none\n` : textOf(found as readonly Frozen<T>[])
}

function endpointTable(endpoints: readonly Frozen<ShownEndpoint>[]): string {
  const word = (value: boolean) => (value ? 'yes' : 'no')
  const rows = endpoints.map((one) => [
    hostPort(one.address, one.port),
    word(one.ready),
    word(one.serving),
    word(one.terminating),
    one.node ?? '-',
    one.zone ?? '-',
    one.hints.join(',') || '-',
    one.targetPod ?? '-',
  ])
  return table([['ENDPOINT', 'READY', 'SERVING', 'TERMINATING', 'NODE', 'ZONE', 'HINTS', 'POD'], ...rows])
}

function nameTable(answers: readonly Frozen<DnsAnswer>[]): string {
  return table([['NAME', 'TYPE', 'ANSWER'], ...answers.map(({ name, type, code, records = [] }) => [name, type, records.join(', ') || code])])
}

function nodeText({ node, found, notShown }: Frozen<Seen<NodeServiceRules> & { node: string }>): string {
  if (!found) return `${node}: not shown: ${notShown}\n`
  const { mode, note, rules = [] } = found
  const shown = rules.flatMap(({ place, lines, connections }) => [
    `  ${place}${connections === undefined ? '' : ` (connections: ${connections})`}${lines === undefined ? ': MISSING in the kernel' : ''}`,
    ...(lines ?? []).map((line) => `    ${line}`),
  ])
  return [`${node}: ${[mode, note].filter(Boolean).join(', ') || 'no rules'}`, ...shown].map((line) => `${line}\n`).join('')
}
