/**
 * The view `networkprobes` (L3): names resolved and connections opened from the network namespace of a pod, or of the node itself. Parameters: `pod`
 * (NAMESPACE/NAME), `resolve` (TYPE/NAME), `connect` (tcp/ADDRESS/PORT or tls/ADDRESS/PORT/NAME). A fixed program does it, outside the pod's cgroup and files.
 */
import type { Connection, DnsQuestion, NetworkProbe, NetworkProbes } from '#api/debug/nodeNetwork'
import { questionTypes } from '#api/debug/nodeNetwork'
import { parseIp } from '#api/machinery/ip'
import { bareMap } from '#base/bareMap'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletView } from '../core/kubeletView.ts'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, networkNote, struct, text, viewSchema, withNote } from './nodeView.ts'

const resolver = struct('PodResolver', [
  field('servers', 1, listOf(text), false),
  field('searches', 2, listOf(text), false),
  field('options', 3, listOf(text), false),
])

const answer = struct('ProbeAnswer', [
  field('name', 1, text),
  field('type', 2, { ...text, enum: [...questionTypes] }),
  field('server', 3, text),
  field('code', 4, text),
  field('records', 5, listOf(text), false),
])

const connection = struct('ProbeConnection', [
  field('address', 1, text),
  field('port', 2, { type: 'integer', format: 'int32' }),
  field('protocol', 3, { ...text, enum: ['tcp', 'tls'] }),
  field('serverName', 4, text, false),
  field('outcome', 5, text),
  field('certificateSubject', 6, text, false),
  field('certificateNotBefore', 7, text, false),
  field('certificateNotAfter', 8, text, false),
  field('certificateNameFault', 9, text, false),
])

const most = 8
const dnsName = /^[a-z0-9_*]([-a-z0-9_]{0,62})(\.[a-z0-9_]([-a-z0-9_]{0,62}))*\.?$/i
const maxNameLength = 253

/** Refuses what is no question of ours: the message becomes the note. */
class ProbeFault extends Error {}

export const networkProbesView: NodeView = {
  resource: 'networkprobes',
  kind: 'NetworkProbes',
  parameters: ['pod', 'resolve', 'connect'],
  schema: viewSchema('NetworkProbes', [
    field('note', 2, text, false),
    field('resolver', 3, resolver, false),
    field('answers', 4, listOf(answer), false),
    field('connections', 5, listOf(connection), false),
  ]),
  columns: [nameColumn, { name: 'Note', type: 'string', value: ({ note = '' }: NetworkProbes) => note }, errorColumn],
  texts: bareMap({
    '': 'NetworkProbes is what a pod or its node reaches. It has the name of the node, which sends the packets when it is asked.',
    note: 'Why nothing was probed.',
    resolver: "What the kubelet wrote into the pod's /etc/resolv.conf. Without a pod: cluster DNS.",
    answers: 'The answers of the name servers.',
    connections: 'The connections that were tried, each closed at once.',
    error: errorText,
  }),
  parts: [
    { schema: resolver, texts: bareMap({ '': 'PodResolver is how a pod resolves names.' }) },
    { schema: answer, texts: bareMap({ '': 'ProbeAnswer is the answer of one name server.', code: 'NOERROR, NODATA, NXDOMAIN, TIMEOUT and so on.' }) },
    {
      schema: connection,
      texts: bareMap({
        '': 'ProbeConnection is one connection.',
        outcome: 'connected, or why not, such as ECONNREFUSED.',
        certificateNameFault: 'Why the certificate is not one of serverName.',
      }),
    },
  ],
  compute: withNote(probe),
}

async function probe(view: KubeletView, query: URLSearchParams): Promise<NetworkProbes> {
  const run = view.context()?.nodeNetwork?.probe
  if (!run) throw new ProbeFault(networkNote(view, 'nothing that can send packets from pods'))
  const questions = few(query.getAll('resolve')).map(questionOf)
  const connections = few(query.getAll('connect')).map(connectionOf)
  const named = query.get('pod')
  const from =
    named === null ? { resolver: { servers: view.config.clusterDNS, searches: [`svc.${view.config.clusterDomain}`], options: [] } } : await podEnd(view, named)
  const results = questions.length + connections.length === 0 ? {} : await run({ ...sourceOf(from), questions, connections })
  return { resolver: from.resolver, ...results }
}

interface End {
  readonly resolver: NonNullable<NetworkProbes['resolver']>
  readonly namespacePath?: string | undefined
}

function sourceOf({ resolver: { servers }, namespacePath }: End): Pick<NetworkProbe, 'servers' | 'namespacePath'> {
  return { servers, namespacePath }
}

async function podEnd(view: KubeletView, named: string): Promise<End> {
  const [namespace = '', name = ''] = named.split('/')
  const pod = view.pod(namespace, name)
  if (!pod) throw new ProbeFault('the pod is not on this node')
  return { resolver: view.resolver(pod), namespacePath: await namespaceOf(view, pod) }
}

async function namespaceOf({ runtime }: KubeletView, pod: FrozenPod): Promise<string | undefined> {
  if (pod.spec.hostNetwork) return undefined
  const [ready] = (await runtime.listPodSandbox(pod.metadata.uid)).filter(({ state }) => state === 'SANDBOX_READY')
  if (!ready) throw new ProbeFault('the pod has no network yet: its sandbox does not run')
  const path = await runtime.sandboxNetworkNamespace?.(ready.id)
  // Without it the probe would be the node's.
  if (path === undefined) throw new ProbeFault('the container runtime does not tell the network namespace of the pod')
  return path
}

function few(given: readonly string[]): readonly string[] {
  if (given.length > most) throw new ProbeFault(`at most ${most} names and ${most} connections at once`)
  return given
}

function questionOf(given: string): DnsQuestion {
  const [typeText = '', name = ''] = given.split('/')
  const type = questionTypes.find((one) => one === typeText)
  if (type === undefined || !isName(name)) throw new ProbeFault('resolve: expected TYPE/NAME, with A, AAAA or SRV')
  return { type, name }
}

function connectionOf(given: string): Connection {
  const [protocol, address = '', portText = '', serverName] = given.split('/')
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if ((protocol !== 'tcp' && protocol !== 'tls') || !parseIp(address) || port < 1 || port > 65_535 || (serverName !== undefined && !isName(serverName)))
    throw new ProbeFault('connect: expected tcp/ADDRESS/PORT or tls/ADDRESS/PORT/NAME')
  return { protocol, address, port, ...(serverName === undefined ? {} : { serverName }) }
}

function isName(name: string): boolean {
  return name.length <= maxNameLength && dnsName.test(name)
}
