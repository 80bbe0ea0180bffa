/** How the server reaches nodes, and services are reached on them (L5). Upstream: pkg/controlplane/apiserver/options (v1.36). */
import { duration, type Flag, flag, list, text, UsageError, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

const addressTypes = ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP']
const reconcilers = ['master-count', 'lease', 'none'] as const
const noProxies = 'Only empty: the server goes to all it calls by itself'

export const reach = optionGroup({
  name: 'Reach',
  flags: {
    'aggregator-reject-forwarding-redirect': flag('Answer 502 where an extension API server answers with a redirect', true),
    'allow-privileged': flag('Only true: the policies of namespaces say which pods may ask for privileges', true),
    'apiserver-count': whole('How many API servers there are, for --endpoint-reconciler-type=master-count', 1),
    'egress-selector-config-file': text(noProxies),
    'enable-aggregator-routing': flag("Accepted, without effect: extension API servers are reached by their services' endpoints"),
    'endpoint-reconciler-type': text(`How API servers learn of each other for the endpoints of the kubernetes service: ${reconcilers.join(', ')}`, 'lease'),
    'kubelet-preferred-address-types': list('The types of nodes’ addresses, in the order in which they are tried', [
      'InternalIP',
      'ExternalIP',
      'Hostname',
      'InternalDNS',
      'ExternalDNS',
    ]),
    'kubelet-timeout': duration('Accepted, without effect: requests to kubelets have the time that the request to the server has', 5000),
    'kubernetes-service-node-port': whole('Only 0: the kubernetes service has an address of the cluster alone', 0),
    'service-node-port-range': portRange('The ports of nodes that services may have: FIRST-LAST, both included', [30_000, 32_767]),
  },
  settings(values) {
    const types = values['kubelet-preferred-address-types']
    const reconciler = reconcilers.find((one) => one === (values['endpoint-reconciler-type'] || 'lease'))
    const count = values['apiserver-count']
    const unknown = types.filter((type) => !addressTypes.includes(type))
    const faults = [
      ...unknown.map((type) => `--kubelet-preferred-address-types: "${type}" is no type of address: use ${addressTypes.join(', ')}`),
      ...(values['allow-privileged'] ? [] : ['--allow-privileged=false is not there: let the Pod Security level of a namespace be baseline or restricted']),
      ...(values['egress-selector-config-file'] === '' ? [] : ['--egress-selector-config-file is not there: the server goes to all it calls by itself']),
      ...(values['kubernetes-service-node-port'] === 0 ? [] : ['--kubernetes-service-node-port is not there: only 0']),
      ...(reconciler ? [] : [`--endpoint-reconciler-type: "${values['endpoint-reconciler-type']}" is none of ${reconcilers.join(', ')}`]),
      ...(count > 0 ? [] : [`--apiserver-count should be a positive number, but value '${count}' provided`]),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {
      endpointReconciler: reconciler ?? 'lease',
      serverCount: count,
      kubeletAddressTypes: types,
      nodePorts: values['service-node-port-range'],
      rejectForwardingRedirects: values['aggregator-reject-forwarding-redirect'],
    }
  },
})

type PortRange = readonly [first: number, last: number]

/** Upstream: apimachinery/pkg/util/net PortRange; also FIRST+COUNT, and a single port. */
function portRange(usage: string, byDefault: PortRange): Flag<PortRange> {
  return {
    type: 'portRange',
    usage,
    default: byDefault,
    format: (range) => range.join('-'),
    parse(given) {
      const [, from = '', sign, to = ''] = /^(\d+)(?:([-+])(\d+))?$/.exec(given.trim()) ?? []
      const first = Number(from)
      const last = sign === undefined ? first : sign === '+' ? first + Number(to) : Number(to)
      if (from === '' || first < 1 || last > 65_535 || last < first) throw new Error('expected a range of ports such as 30000-32767')
      return [first, last]
    },
  }
}
