/** Collects what `skiff net trace` judges (L4): reads objects with the rights of the caller, asks the nodes for their views, and lets the pod's node probe. */
import type { ConnectionVerdict, ExplainPolicies } from '#api/debug/networkPolicy'
import type { ConnectionResult, DnsAnswer, NetworkProbes, NodeRoutes, NodeServiceRules } from '#api/debug/nodeNetwork'
import type { Node, Pod, Service, ServicePort } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Ingress, IngressClass } from '#api/gen/types/networking.v1'
import { hasClusterIp } from '#api/helpers/services'
import { formatLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { endpointsOf, type ShownEndpoint } from '../endpoints.ts'
import { policyQuestion } from '../policyQuestion.ts'
import { namedObject, paths, type Reader, required, type Seen, slicesOf, viewOf } from '../reader.ts'
import type { Destination, IngressFacts, ServiceFacts, Target, TraceFacts } from './facts.ts'
import { candidateNames, parseTarget, serviceOfName } from './target.ts'

export interface TraceDeps {
  readonly reader: Reader
  readonly explainPolicies: ExplainPolicies
  readonly nowMs: number
}

export interface TraceFlags {
  readonly namespace: string
  readonly port?: string | undefined
  /** The address of the load balancer is meant. */
  readonly external?: boolean | undefined
}

/** More endpoints are not looked at. A probe takes eight connections. */
const mostDestinations = 4
/** The Service of cluster DNS, as dns/clusterDns.ts creates it. */
const dnsService = 'kube-system/kube-dns'
const podPrefix = /^(?:pods?|po)\//

export async function gatherFacts(deps: TraceDeps, podText: string, targetText: string, flags: TraceFlags): Promise<TraceFacts> {
  const { reader, nowMs } = deps
  const named = namedObject(podText, podPrefix, flags.namespace)
  const pod = required(await reader.get<Pod>(paths.pod(named.namespace, named.name)), `pod ${named.namespace}/${named.name}`)
  const given = parseTarget(targetText, named.namespace, flags.port)
  const source = await probeFrom(reader, pod)
  const domain = source.found?.resolver?.searches.find((search) => search.startsWith('svc.'))?.slice('svc.'.length) ?? 'cluster.local'
  const whole = withName(given, domain)
  const names = whole.host === undefined ? { found: [] } : await resolved(reader, pod, whole.host, source)
  const answers = names.found ?? []
  const ingress = whole.host === undefined || serviceNamed(whole, pod, domain) ? undefined : await ingressOf(reader, whole.host)
  const target = ingress ? withIngressPort(whole, ingress) : whole
  const service = await serviceFacts(deps, pod, target, serviceNamed(target, pod, domain), flags.external ?? false)
  const destinations = await destinationsOf(deps, pod, target, service)
  const addresses = answers.find(({ records = [] }) => records.length > 0)?.records ?? []
  const front = frontOf({ target, service, ingress, addresses })
  const protocol = service?.port?.protocol ?? destinations[0]?.protocol ?? 'TCP'
  const probed: Probed =
    protocol === 'TCP'
      ? await connections(reader, pod, { target, front, destinations: usedOf(destinations) }, source)
      : { notProbed: `only ports of TCP are probed, and this is one of ${protocol}`, direct: [] }
  const nodes = [...new Set([pod.spec.nodeName, ...destinations.map(({ node }) => node)].flatMap((name) => name ?? []))]
  return {
    nowMs,
    pod,
    target,
    nodes: new Map(await Promise.all(nodes.map(async (name) => [name, await reader.get<Node>(paths.node(name))] as const))),
    routes: new Map(await Promise.all(nodes.map(async (name) => [name, await viewOf<NodeRoutes>(reader, 'noderoutes', name)] as const))),
    resolver: names.notShown === undefined ? { found: source.found?.resolver } : { notShown: names.notShown },
    answers,
    ...(answers.length > 0 && answers.every(({ code }) => code === 'TIMEOUT') ? { dnsRules: await rulesFor(reader, pod, dnsService) } : {}),
    service,
    ingress,
    destinations,
    ...probed,
  }
}

/** Without a question: how the pod resolves names, or why its node cannot probe. */
async function probeFrom(reader: Reader, pod: Frozen<Pod>, query: Record<string, readonly string[]> = {}): Promise<Seen<NetworkProbes>> {
  const { nodeName } = pod.spec
  if (nodeName === undefined) return { notShown: 'the pod is on no node' }
  const seen = await viewOf<NetworkProbes>(reader, 'networkprobes', nodeName, { ...query, pod: `${pod.metadata.namespace}/${pod.metadata.name}` })
  return seen.found?.note === undefined ? seen : { notShown: seen.found.note }
}

/** A Service is reached by its whole name. */
function withName(target: Target, domain: string): Target {
  return target.service ? { ...target, host: `${target.service.name}.${target.service.namespace}.svc.${domain}` } : target
}

/** A host of an Ingress without a port: that of TLS when the Ingress has a certificate for it. */
function withIngressPort(target: Target, { ingress }: IngressFacts): Target {
  if (target.port !== undefined) return target
  const isTls = ingress.spec?.tls?.some(({ hosts }) => hosts?.includes(target.host ?? '')) ?? false
  return { ...target, isTls, port: isTls ? '443' : '80' }
}

function serviceNamed({ service, host }: Target, pod: Frozen<Pod>, domain: string) {
  return service ?? (host === undefined ? undefined : serviceOfName(host, pod.metadata.namespace ?? '', domain))
}

async function resolved(reader: Reader, pod: Frozen<Pod>, host: string, { found, notShown }: Seen<NetworkProbes>): Promise<Seen<readonly DnsAnswer[]>> {
  if (!found?.resolver) return { notShown: notShown ?? 'the node does not say how the pod resolves names' }
  const names = candidateNames(host, found.resolver.searches, found.resolver.options)
  const isIpv6 = pod.status?.podIP?.includes(':') ?? false
  const asked = await probeFrom(reader, pod, { resolve: names.map((name) => `${isIpv6 ? 'AAAA' : 'A'}/${name}`) })
  if (asked.notShown !== undefined) return { notShown: asked.notShown }
  return { found: names.flatMap((name) => asked.found?.answers?.filter((answer) => answer.name === name) ?? []) }
}

async function ingressOf(reader: Reader, host: string): Promise<IngressFacts | undefined> {
  const { found = [] } = await reader.list<Ingress>(paths.ingresses)
  const ingress = found.find(({ spec }) => spec?.rules?.some((rule) => rule.host === host))
  return ingress && { ingress, classes: await reader.list<IngressClass>(paths.ingressClasses) }
}

async function serviceFacts(
  { reader }: TraceDeps,
  pod: Frozen<Pod>,
  target: Target,
  named: { readonly namespace: string; readonly name: string } | undefined,
  isExternal: boolean,
): Promise<ServiceFacts | undefined> {
  if (!named) return undefined
  const { namespace, name } = named
  const service = await reader.get<Service>(paths.service(namespace, name))
  // A name of another kind, such as that of a host outside.
  if (!service.found && !service.notShown && !target.service && target.host?.includes('.') && !target.host.includes('.svc')) return undefined
  const matchLabels = service.found?.spec.selector ?? {}
  const selected =
    Object.keys(matchLabels).length === 0
      ? { found: [] }
      : await reader.list<Pod>(paths.pods(namespace), { labelSelector: formatLabelSelector({ matchLabels }) })
  const port = portOf(service.found, target.port)
  const slices = await slicesOf<EndpointSlice>(reader, namespace, name)
  return {
    namespace,
    name,
    service,
    port,
    endpoints: slices.notShown === undefined ? { found: port ? endpointsOf(slices.found ?? [], port) : [] } : { notShown: slices.notShown },
    selected,
    others: selected.found?.length === 0 ? await reader.list<Pod>(paths.pods(namespace), { limit: '100' }) : { found: [] },
    rules: await rulesFor(reader, pod, `${namespace}/${name}`),
    isExternal,
  }
}

/** On the node of the pod. */
async function rulesFor(reader: Reader, { spec: { nodeName } }: Frozen<Pod>, service: string): Promise<Seen<NodeServiceRules>> {
  return nodeName === undefined ? { notShown: 'the pod is on no node' } : viewOf<NodeServiceRules>(reader, 'servicerules', nodeName, { service })
}

function portOf(service: Frozen<Service> | undefined, wanted: string | undefined): Frozen<ServicePort> | undefined {
  const ports = service?.spec.ports ?? []
  if (wanted === undefined) return ports.length === 1 ? ports[0] : undefined
  return portNamed(ports, ({ name, port }) => name === wanted || String(port) === wanted)
}

/** A number may mean a port of each protocol: that of TCP then, because it can be probed. */
function portNamed<P extends { readonly protocol?: string | undefined }>(ports: readonly P[], isMeant: (port: P) => boolean): P | undefined {
  const meant = ports.filter(isMeant)
  return meant.find(({ protocol = 'TCP' }) => protocol === 'TCP') ?? meant[0]
}

async function destinationsOf(deps: TraceDeps, pod: Frozen<Pod>, target: Target, service: ServiceFacts | undefined): Promise<Destination[]> {
  const { reader } = deps
  if (target.pod)
    return [await podDestination(deps, pod, required(await reader.get<Pod>(paths.pod(target.pod.namespace, target.pod.name)), `pod ${target.text}`), target)]
  if (target.address !== undefined) return [await withVerdict(deps, pod, { address: target.address, port: Number(target.port), protocol: 'TCP', ready: true })]
  if (!service?.port) return []
  const { protocol = 'TCP' } = service.port
  const rank = ({ ready, node }: ShownEndpoint) => (ready ? 0 : 2) + (node === pod.spec.nodeName ? 0 : 1)
  const endpoints = [...(service.endpoints.found ?? [])].sort((a, b) => rank(a) - rank(b)).slice(0, mostDestinations)
  return Promise.all(
    endpoints.map(async ({ address, port, ready, node, targetPod }) => {
      const found = service.selected.found?.find(({ metadata }) => metadata.name === targetPod)
      return withVerdict(deps, pod, { address, port, protocol, ready, node, pod: found })
    }),
  )
}

async function podDestination(deps: TraceDeps, from: Frozen<Pod>, to: Frozen<Pod>, { port: wanted }: Target): Promise<Destination> {
  const ports = to.spec.containers.flatMap(({ ports = [] }) => ports)
  const declared = wanted === undefined ? ports[0] : portNamed(ports, ({ name, containerPort }) => name === wanted || String(containerPort) === wanted)
  const port = declared?.containerPort ?? Number(wanted)
  required({ found: Number.isInteger(port) ? port : undefined }, `port ${wanted ?? ''} of the pod: name one with --port`)
  return withVerdict(deps, from, { address: to.status?.podIP ?? '', port, protocol: declared?.protocol ?? 'TCP', ready: true, node: to.spec.nodeName, pod: to })
}

async function withVerdict({ reader, explainPolicies }: TraceDeps, from: Frozen<Pod>, to: Omit<Destination, 'verdict'>): Promise<Destination> {
  return { ...to, verdict: await verdictOf() }

  async function verdictOf(): Promise<Seen<ConnectionVerdict>> {
    const peer = to.pod ? `${to.pod.metadata.namespace}/${to.pod.metadata.name}` : to.address
    try {
      const question = await policyQuestion(reader.ask, `${from.metadata.namespace}/${from.metadata.name}`, {
        namespace: '',
        to: peer,
        port: `${to.port}/${to.protocol}`,
      })
      return { found: (await explainPolicies(question)).verdicts[0] }
    } catch (error) {
      return { notShown: messageOf(error) }
    }
  }
}

function usedOf(destinations: readonly Destination[]): readonly Destination[] {
  const ready = destinations.filter((one) => one.ready)
  return ready.length > 0 ? ready : destinations
}

interface Front {
  readonly address: string
  readonly port: number
}

/** Where the pod's connection goes; undefined: nowhere, or to the destination itself. */
function frontOf(facts: {
  readonly target: Target
  readonly service: ServiceFacts | undefined
  readonly ingress: IngressFacts | undefined
  readonly addresses: readonly string[]
}): Front | undefined {
  const { target, service, ingress, addresses } = facts
  const found = service?.service.found
  const port = service?.port?.port ?? Number(target.port)
  if (!Number.isInteger(port)) return undefined
  const balancer = (service?.isExternal ? found : ingress?.ingress)?.status?.loadBalancer?.ingress?.flatMap(({ ip }) => ip ?? [])[0]
  if (service?.isExternal) return balancer === undefined ? undefined : { address: balancer, port }
  const address = addresses[0] ?? balancer ?? (found && hasClusterIp(found) ? found.spec.clusterIP : undefined)
  if (address === undefined || (found && !hasClusterIp(found) && found.spec.type !== 'ExternalName')) return undefined
  return { address, port }
}

type Probed = Pick<TraceFacts, 'front' | 'direct' | 'notProbed'>

async function connections(
  reader: Reader,
  pod: Frozen<Pod>,
  { target, front, destinations }: { readonly target: Target; readonly front: Front | undefined; readonly destinations: readonly Destination[] },
  source: Seen<NetworkProbes>,
): Promise<Probed> {
  if (source.notShown !== undefined) return { notProbed: source.notShown, direct: [] }
  const ends = [...(front ? [front] : []), ...destinations].filter(({ address }) => address !== '')
  if (ends.length === 0) return { direct: [] }
  const serverName = target.isTls ? `/${target.host ?? ''}` : ''
  const wordOf = ({ address, port }: Front) => `${target.isTls ? 'tls' : 'tcp'}/${address}/${port}${serverName === '/' ? '' : serverName}`
  const { found, notShown } = await probeFrom(reader, pod, { connect: [...new Set(ends.map(wordOf))] })
  if (!found) return { notProbed: notShown, direct: [] }
  const resultOf = (end: Front): ConnectionResult[] =>
    found.connections?.filter(({ address, port }) => address === end.address && port === end.port).slice(0, 1) ?? []
  return { front: front && resultOf(front)[0], direct: destinations.flatMap(resultOf) }
}
