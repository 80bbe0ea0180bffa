/** The objects that `skiff net policy` asks the cluster for (L4): the pods at both ends, their namespaces and the policies there; no list of the whole cluster. */
import type { ConnectionEnd, ConnectionQuestion, PolicyQuestion } from '#api/debug/networkPolicy'
import type { Namespace, Pod } from '#api/gen/types/core.v1'
import type { NetworkPolicy } from '#api/gen/types/networking.v1'
import { formatIp, parseIp } from '#api/machinery/ip'
import type { Frozen, KubeList } from '#api/machinery/meta'
import { CommandError } from '../exitCodes.ts'
import { type Ask, askFor } from '../why/questions.ts'

export interface PolicyFlags {
  readonly namespace: string
  /** NAME, NAMESPACE/NAME or an address. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** 80, 53/UDP, or the name of a port of the destination. */
  readonly port?: string | undefined
}

type Port = ConnectionQuestion['ports'][number]

export async function policyQuestion(ask: Ask, name: string, { namespace, from, to, port }: PolicyFlags): Promise<PolicyQuestion> {
  if (from !== undefined && to !== undefined) throw new CommandError('usage', 'net policy: expected --from or --to, not both')
  if (port !== undefined && from === undefined && to === undefined)
    throw new CommandError('usage', `--port ${port}: expected the other end too`, { hint: 'name it with --from or --to' })
  const pod = await podNamed(ask, name, namespace)
  const other = from ?? to
  const peer = other === undefined ? undefined : await endNamed(ask, other, namespace)
  const pods = [pod, ...(peer && 'pod' in peer ? [peer.pod] : [])]
  const names = [...new Set(pods.map(({ metadata }) => metadata.namespace ?? ''))]
  const policies = await Promise.all(
    names.map((one) => askFor<KubeList<NetworkPolicy>>(ask, `/apis/networking.k8s.io/v1/namespaces/${encodeURIComponent(one)}/networkpolicies`)),
  )
  return {
    pod,
    connection: peer && connectionOf({ pod }, peer, from !== undefined, port),
    policies: policies.flatMap(({ items }) => items),
    namespaces: await Promise.all(names.map((one) => askFor<Namespace>(ask, `/api/v1/namespaces/${encodeURIComponent(one)}`))),
  }
}

function connectionOf(pod: ConnectionEnd, peer: ConnectionEnd, isFrom: boolean, port: string | undefined): ConnectionQuestion {
  const [source, destination] = isFrom ? [peer, pod] : [pod, peer]
  return { source, destination, ports: portsOf(destination, port) }
}

async function podNamed(ask: Ask, text: string, namespace: string): Promise<Pod> {
  const [first = '', second] = text.replace(/^(?:pods?|po)\//, '').split('/')
  const [of, name] = second === undefined ? [namespace, first] : [first, second]
  return askFor<Pod>(ask, `/api/v1/namespaces/${encodeURIComponent(of)}/pods/${encodeURIComponent(name)}`)
}

/** An address may be a pod's: pods on the network of their node share theirs with the node, so they are named. */
async function endNamed(ask: Ask, text: string, namespace: string): Promise<ConnectionEnd> {
  const ip = parseIp(text)
  if (!ip) return { pod: await podNamed(ask, text, namespace) }
  const address = formatIp(ip)
  const { items } = await askFor<KubeList<Pod>>(ask, `/api/v1/pods?fieldSelector=${encodeURIComponent(`status.podIP=${address},spec.hostNetwork=false`)}`)
  const pod = items.find(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
  return pod ? { pod } : { address }
}

const protocols = ['TCP', 'UDP', 'SCTP'] as const

function portsOf(destination: ConnectionEnd, text: string | undefined): readonly Port[] {
  const declared = 'pod' in destination ? declaredPorts(destination.pod) : []
  if (text === undefined) {
    if (declared.length > 0) return declared.map(({ protocol, port }) => ({ protocol, port }))
    throw new CommandError('usage', 'the destination declares no ports', { hint: 'name one: --port 80, --port 53/UDP' })
  }
  const [number = '', name = 'TCP'] = text.split('/')
  const protocol = protocols.find((one) => one === name.toUpperCase())
  const port = /^\d{1,5}$/.test(number) ? Number(number) : declared.find((one) => one.name === number)?.port
  if (protocol === undefined || port === undefined || port < 1 || port > 65_535)
    throw new CommandError('usage', `--port ${text}: expected a number, a number with a protocol such as 53/UDP, or the name of a port of the destination`)
  return [{ protocol: declared.find((one) => one.name === number)?.protocol ?? protocol, port }]
}

function declaredPorts({ spec }: Frozen<Pod>): readonly (Port & { readonly name: string | undefined })[] {
  return [...spec.containers, ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')].flatMap(({ ports = [] }) =>
    ports.map(({ name, protocol = 'TCP', containerPort }) => ({ name, protocol: protocol as Port['protocol'], port: containerPort })),
  )
}
