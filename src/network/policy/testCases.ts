/**
 * Cases of network policies for tests (L3): a small cluster, policies, and which connections pass. The unit tests hold the model against them, and an end-to-end
 * test the kernel with the rendered rules. Names follow upstream's cases: test/e2e/network/netpol (v1.36), whose pods and ports these are.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { NetworkPolicy, NetworkPolicySpec } from '#api/gen/types/networking.v1'
import { compilePolicy } from './compilePolicy.ts'
import { type Protocol, podFactsOf } from './facts.ts'
import { complete, PolicyModel } from './model.ts'
import type { Connection } from './terms.ts'

export type Stack = 'IPv4' | 'IPv6'

export interface TestPod {
  readonly key: string
  /** The pods of node 1 are on one bridge; node 2's are behind a router. */
  readonly node: 1 | 2
  readonly addresses: Readonly<Record<Stack, string>>
}

/** All pods serve TCP and UDP on the ports 80 and 81, which are named as upstream names them. In y the port `web` is 81, elsewhere 80. */
export const testPods: readonly TestPod[] = [
  { key: 'x/a', node: 1, addresses: { IPv4: '10.244.1.11', IPv6: 'fd01:0:0:1::11' } },
  { key: 'x/b', node: 1, addresses: { IPv4: '10.244.1.12', IPv6: 'fd01:0:0:1::12' } },
  { key: 'y/a', node: 2, addresses: { IPv4: '10.244.2.11', IPv6: 'fd01:0:0:2::11' } },
  { key: 'y/b', node: 1, addresses: { IPv4: '10.244.1.13', IPv6: 'fd01:0:0:1::13' } },
  { key: 'z/c', node: 2, addresses: { IPv4: '10.244.2.12', IPv6: 'fd01:0:0:2::12' } },
]

/** A machine that is no pod. */
export const outside: TestPod = { key: 'outside', node: 2, addresses: { IPv4: '10.244.2.99', IPv6: 'fd01:0:0:2::99' } }

export interface PolicyCase {
  readonly name: string
  readonly policies: readonly NetworkPolicy[]
  /** Connections such as `x/a > x/b 80`; the protocol is TCP unless `/udp` or `/sctp` follows. */
  readonly passes: readonly string[]
  readonly blocked: readonly string[]
}

export interface Probe {
  readonly from: TestPod
  readonly to: TestPod
  readonly port: number
  readonly protocol: Protocol
}

export function probeOf(text: string): Probe {
  const [, from, to, port, protocol = 'tcp'] = /^(\S+) > (\S+) (\d+)(?:\/(\w+))?$/.exec(text) ?? []
  const byKey = (key: string | undefined) => [...testPods, outside].find((pod) => pod.key === key) ?? fail(text)
  return { from: byKey(from), to: byKey(to), port: Number(port), protocol: protocol as Protocol }
}

function fail(text: string): never {
  throw new Error(`no connection: ${text}`)
}

export function connectionOf({ from, to, port, protocol }: Probe, stack: Stack): Connection {
  return { source: from.addresses[stack], destination: to.addresses[stack], port, protocol }
}

/** The pod as the API has it. @param labels in addition to `pod`, its name */
export function podObject({ key, node, addresses }: TestPod, labels: Record<string, string> = {}): Pod {
  const [namespace = '', name = ''] = key.split('/')
  const ports = [80, 81].flatMap((port) =>
    ['TCP', 'UDP'].map((protocol) => ({ containerPort: port, protocol, name: `serve-${port}-${protocol.toLowerCase()}` })),
  )
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, uid: key, labels: { pod: name, ...labels } },
    spec: { nodeName: `node-${node}`, containers: [{ name: 'app', ports: [...ports, { name: 'web', containerPort: namespace === 'y' ? 81 : 80 }] }] },
    status: { podIPs: [{ ip: addresses.IPv4 }, { ip: addresses.IPv6 }] },
  }
}

export function namespaceLabels(name: string): Record<string, string> {
  return { ns: name, 'kubernetes.io/metadata.name': name }
}

/** A model of the test's pods that enforces policies for all of them. */
export function modelOf(policies: readonly NetworkPolicy[]): PolicyModel {
  const model = new PolicyModel(() => true)
  for (const name of ['x', 'y', 'z']) complete(model.updateNamespace(name, namespaceLabels(name)))
  for (const pod of testPods) complete(model.updatePod(pod.key, podFactsOf(podObject(pod))))
  for (const policy of policies) complete(model.updatePolicy(`x/${policy.metadata.name}`, policy.metadata.namespace ?? '', complete(compilePolicy(policy))))
  complete(model.settle())
  return model
}

let count = 0

/** A policy in x. */
function policy(spec: Partial<NetworkPolicySpec>, namespace = 'x'): NetworkPolicy {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: `policy-${count++}`, namespace }, spec: { podSelector: {}, ...spec } }
}

const pod = (name: string) => ({ podSelector: { matchLabels: { pod: name } } })
const ns = (name: string) => ({ namespaceSelector: { matchLabels: { ns: name } } })
const block = (cidr: string, ...except: string[]) => ({ ipBlock: { cidr, ...(except.length > 0 ? { except } : {}) } })
const onA = pod('a')
const ingress = ['Ingress']
const egress = ['Egress']
const both = ['Ingress', 'Egress']
const everyone = ['x/b > x/a 80', 'y/a > x/a 81', 'y/b > x/a 80/udp', 'z/c > x/a 80', 'outside > x/a 80']
const everywhere = ['x/a > x/b 80', 'x/a > y/a 81', 'x/a > y/b 80/udp', 'x/a > z/c 80', 'x/a > outside 80']

export const policyCases: readonly PolicyCase[] = [
  { name: 'no policy', policies: [], passes: [...everyone, ...everywhere], blocked: [] },
  {
    name: "should support a 'default-deny-ingress' policy",
    policies: [policy({ policyTypes: ingress })],
    passes: ['x/a > y/a 80', 'x/b > z/c 81/udp', 'y/a > y/b 80', 'x/a > outside 80'],
    blocked: [...everyone, 'x/a > x/b 80'],
  },
  { name: 'a policy without types isolates ingress only', policies: [policy({})], passes: ['x/a > y/a 80'], blocked: everyone },
  {
    name: 'a policy without types but with egress rules isolates both',
    policies: [policy({ egress: [{ to: [ns('y')] }] })],
    passes: ['x/a > y/a 80'],
    blocked: [...everyone, 'x/a > z/c 80'],
  },
  {
    name: "should support a 'default-deny-all' policy",
    policies: [policy({ policyTypes: both })],
    passes: ['y/a > z/c 80', 'y/b > y/a 80/udp'],
    blocked: [...everyone, ...everywhere],
  },
  {
    name: 'should enforce policy to allow traffic from pods within server namespace based on PodSelector',
    policies: [policy({ ...onA, ingress: [{ from: [pod('b')] }] })],
    passes: ['x/b > x/a 80', 'x/b > x/a 81/udp', 'y/a > x/b 80'],
    blocked: ['y/b > x/a 80', 'z/c > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'should enforce policy to allow ingress traffic for a target',
    policies: [policy({ policyTypes: ingress }), policy({ ...onA, ingress: [{}] })],
    passes: everyone,
    blocked: ['x/a > x/b 80', 'y/a > x/b 80'],
  },
  {
    name: 'should enforce policy to allow ingress traffic from pods in all namespaces',
    policies: [policy({ ...onA, ingress: [{ from: [{ namespaceSelector: {} }] }] })],
    passes: everyone.slice(0, 4),
    blocked: ['outside > x/a 80'],
  },
  {
    name: 'should enforce policy to allow traffic only from a different namespace, based on NamespaceSelector',
    policies: [policy({ ...onA, ingress: [{ from: [ns('y')] }] })],
    passes: ['y/a > x/a 80', 'y/b > x/a 81/udp'],
    blocked: ['x/b > x/a 80', 'z/c > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'should enforce policy based on PodSelector with MatchExpressions',
    policies: [policy({ ...onA, ingress: [{ from: [{ podSelector: { matchExpressions: [{ key: 'pod', operator: 'In', values: ['b', 'c'] }] } }] }] })],
    passes: ['x/b > x/a 80'],
    blocked: ['y/b > x/a 80', 'z/c > x/a 80'],
  },
  {
    name: 'should enforce policy based on NamespaceSelector with MatchExpressions',
    policies: [policy({ ...onA, ingress: [{ from: [{ namespaceSelector: { matchExpressions: [{ key: 'ns', operator: 'NotIn', values: ['z'] }] } }] }] })],
    passes: ['x/b > x/a 80', 'y/a > x/a 80', 'y/b > x/a 80'],
    blocked: ['z/c > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'should enforce policy based on PodSelector or NamespaceSelector',
    policies: [policy({ ...onA, ingress: [{ from: [ns('z'), pod('b')] }] })],
    passes: ['x/b > x/a 80', 'z/c > x/a 80'],
    blocked: ['y/a > x/a 80', 'y/b > x/a 80'],
  },
  {
    name: 'should enforce policy based on PodSelector and NamespaceSelector',
    policies: [policy({ ...onA, ingress: [{ from: [{ ...ns('y'), ...pod('b') }] }] })],
    passes: ['y/b > x/a 80'],
    blocked: ['y/a > x/a 80', 'x/b > x/a 80', 'z/c > x/a 80'],
  },
  {
    name: 'should enforce policy based on Multiple PodSelectors and NamespaceSelectors',
    policies: [
      policy({
        ...onA,
        ingress: [
          {
            from: [
              { ...ns('y'), ...pod('b') },
              { ...ns('z'), ...pod('c') },
            ],
          },
        ],
      }),
    ],
    passes: ['y/b > x/a 80', 'z/c > x/a 80'],
    blocked: ['y/a > x/a 80', 'x/b > x/a 80'],
  },
  {
    name: 'should enforce policy based on any PodSelectors',
    policies: [policy({ ...onA, ingress: [{ from: ['b', 'c'].map((name) => ({ namespaceSelector: {}, ...pod(name) })) }] })],
    passes: ['x/b > x/a 80', 'y/b > x/a 80', 'z/c > x/a 80'],
    blocked: ['y/a > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'should enforce policy based on Ports',
    policies: [policy({ ...onA, ingress: [{ from: [ns('y')], ports: [{ port: 81, protocol: 'TCP' }] }] })],
    passes: ['y/a > x/a 81', 'y/b > x/a 81'],
    blocked: ['y/a > x/a 80', 'y/a > x/a 81/udp', 'x/b > x/a 81'],
  },
  {
    name: 'should enforce multiple, stacked policies with overlapping podSelectors',
    policies: [
      policy({ ...onA, ingress: [{ from: [ns('y')], ports: [{ port: 81 }] }] }),
      policy({ ...onA, ingress: [{ from: [ns('y')], ports: [{ port: 80 }] }] }),
    ],
    passes: ['y/a > x/a 81', 'y/a > x/a 80'],
    blocked: ['x/b > x/a 80', 'y/a > x/a 80/udp'],
  },
  { name: 'should support allow-all policy', policies: [policy({ ingress: [{}] })], passes: everyone, blocked: [] },
  {
    name: 'should allow ingress access on one named port',
    policies: [policy({ ...onA, ingress: [{ ports: [{ port: 'serve-81-tcp' }] }] })],
    passes: ['x/b > x/a 81', 'z/c > x/a 81', 'outside > x/a 81'],
    blocked: ['x/b > x/a 80', 'x/b > x/a 81/udp'],
  },
  {
    name: 'should allow ingress access from namespace on one named port',
    policies: [policy({ ...onA, ingress: [{ from: [ns('y')], ports: [{ port: 'serve-80-tcp' }] }] })],
    passes: ['y/a > x/a 80', 'y/b > x/a 80'],
    blocked: ['x/b > x/a 80', 'y/a > x/a 81'],
  },
  {
    name: 'should allow egress access on one named port',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ ports: [{ port: 'serve-80-tcp' }] }] })],
    passes: ['x/a > x/b 80', 'x/a > y/a 80', 'x/a > z/c 80'],
    blocked: ['x/a > x/b 81', 'x/a > y/a 80/udp', 'x/a > outside 80'],
  },
  {
    name: 'a named port has the number that the destination pod gives it',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ to: [ns('y'), ns('z')], ports: [{ port: 'web' }] }] })],
    passes: ['x/a > y/a 81', 'x/a > z/c 80'],
    blocked: ['x/a > y/a 80', 'x/a > z/c 81', 'x/a > x/b 80'],
  },
  {
    name: 'a named port that the pod does not have allows nothing, also beside one that it has',
    policies: [policy({ ...onA, ingress: [{ ports: [{ port: 'other' }, { port: 'serve-80-udp', protocol: 'UDP' }] }] })],
    passes: ['x/b > x/a 80/udp'],
    blocked: ['x/b > x/a 80', 'x/b > x/a 81/udp'],
  },
  {
    name: 'a named port with a block of addresses',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ to: [block('10.244.2.0/24'), block('fd01:0:0:2::/64')], ports: [{ port: 'web' }] }] })],
    passes: ['x/a > y/a 81', 'x/a > z/c 80'],
    blocked: ['x/a > y/a 80', 'x/a > y/b 81', 'x/a > outside 80'],
  },
  {
    name: 'should deny ingress from pods on other namespaces',
    policies: [policy({ ingress: [{ from: [{ podSelector: {} }] }] })],
    passes: ['x/b > x/a 80', 'x/a > x/b 81/udp'],
    blocked: ['y/a > x/a 80', 'y/b > x/b 80', 'z/c > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'should deny egress from pods based on PodSelector',
    policies: [policy({ ...onA, policyTypes: egress })],
    passes: ['x/b > x/a 80', 'y/a > x/a 80', 'x/b > y/a 80'],
    blocked: everywhere,
  },
  {
    name: 'should deny egress from all pods in a namespace',
    policies: [policy({ policyTypes: egress })],
    passes: ['y/a > x/a 80', 'outside > x/b 80'],
    blocked: [...everywhere, 'x/b > x/a 80', 'x/b > y/b 80'],
  },
  {
    name: 'should work with Ingress, Egress specified together',
    policies: [policy({ ...onA, policyTypes: both, ingress: [{ from: [ns('y'), pod('b')] }], egress: [{ ports: [{ port: 80 }] }] })],
    passes: ['x/b > x/a 80', 'y/a > x/a 81', 'x/a > z/c 80', 'x/a > outside 80'],
    blocked: ['z/c > x/a 80', 'x/a > z/c 81', 'x/a > y/a 80/udp'],
  },
  {
    name: 'should support denying of egress traffic on the client side (even if the server explicitly allows this traffic)',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ to: [ns('y')] }] }), policy({ ...pod('c'), ingress: [{}] }, 'z')],
    passes: ['x/a > y/a 80', 'x/b > z/c 80'],
    blocked: ['x/a > z/c 80'],
  },
  {
    name: 'the server’s policy blocks what the client’s allows',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{}] }), policy({ ...pod('c'), ingress: [{ from: [ns('y')] }] }, 'z')],
    passes: ['y/a > z/c 80', 'x/a > y/a 80'],
    blocked: ['x/a > z/c 80'],
  },
  {
    name: 'should enforce egress policy allowing traffic to a server in a different namespace based on PodSelector and NamespaceSelector',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ to: [{ ...ns('y'), ...pod('a') }] }] })],
    passes: ['x/a > y/a 80'],
    blocked: ['x/a > y/b 80', 'x/a > x/b 80', 'x/a > outside 80'],
  },
  {
    name: 'should enforce ingress policy allowing any port traffic to a server on a specific protocol',
    policies: [policy({ ...onA, ingress: [{ ports: [{ protocol: 'TCP' }] }] })],
    passes: ['x/b > x/a 80', 'y/a > x/a 81'],
    blocked: ['x/b > x/a 80/udp', 'y/a > x/a 81/udp'],
  },
  {
    name: 'should enforce multiple ingress policies with ingress allow-all policy taking precedence',
    policies: [policy({ policyTypes: ingress }), policy({ policyTypes: ingress, ingress: [{}] })],
    passes: everyone,
    blocked: [],
  },
  {
    name: 'should enforce multiple egress policies with egress allow-all policy taking precedence',
    policies: [policy({ policyTypes: egress }), policy({ policyTypes: egress, egress: [{}] })],
    passes: everywhere,
    blocked: [],
  },
  {
    name: 'should allow egress access to server in CIDR block',
    policies: [policy({ ...onA, policyTypes: egress, egress: [{ to: [block('10.244.1.13/32'), block('fd01:0:0:1::13/128')] }] })],
    passes: ['x/a > y/b 80', 'x/a > y/b 81/udp'],
    blocked: ['x/a > x/b 80', 'x/a > y/a 80'],
  },
  {
    name: 'should enforce except clause while egress access to server in CIDR block',
    policies: [
      policy({
        ...onA,
        policyTypes: egress,
        egress: [{ to: [block('10.244.0.0/16', '10.244.2.0/24', '10.244.2.12/32'), block('fd01::/48', 'fd01:0:0:2::12/128', 'fd01:0:0:2::/64')] }],
      }),
    ],
    passes: ['x/a > x/b 80', 'x/a > y/b 80'],
    blocked: ['x/a > y/a 80', 'x/a > z/c 80', 'x/a > outside 80'],
  },
  {
    name: 'should ensure an IP overlapping both IPBlock.CIDR and IPBlock.Except is allowed',
    policies: [
      policy({ ...onA, policyTypes: egress, egress: [{ to: [block('10.244.0.0/16', '10.244.2.11/32'), block('fd01::/48', 'fd01:0:0:2::11/128')] }] }),
      policy({ ...onA, policyTypes: egress, egress: [{ to: [block('10.244.2.11/32'), block('fd01:0:0:2::11/128')] }] }),
    ],
    passes: ['x/a > y/a 80', 'x/a > z/c 80'],
    blocked: [],
  },
  {
    name: 'a block of all addresses allows its family only',
    policies: [policy({ ...onA, ingress: [{ from: [block('0.0.0.0/0', '10.244.2.0/24'), block('::/0', 'fd01:0:0:2::/64')] }] })],
    passes: ['x/b > x/a 80', 'y/b > x/a 80/udp'],
    blocked: ['y/a > x/a 80', 'outside > x/a 80'],
  },
  {
    name: 'ingress from a block admits machines that are no pods',
    policies: [policy({ ...onA, ingress: [{ from: [block('10.244.2.99/32'), block('fd01:0:0:2::99/128')], ports: [{ port: 80 }] }] })],
    passes: ['outside > x/a 80'],
    blocked: ['outside > x/a 81', 'z/c > x/a 80', 'x/b > x/a 80'],
  },
  {
    name: 'should enforce policies to check ingress and egress policies can be controlled independently based on PodSelector',
    policies: [policy({ ...onA, policyTypes: both, egress: [{ to: [pod('b')] }] })],
    passes: ['x/a > x/b 80', 'x/b > y/a 80'],
    blocked: ['x/b > x/a 80', 'x/a > y/a 80'],
  },
  {
    name: "should not mistakenly treat 'protocol: SCTP' as 'protocol: TCP', even if the plugin doesn't support SCTP",
    policies: [policy({ ...onA, ingress: [{ ports: [{ port: 80, protocol: 'SCTP' }] }] })],
    passes: ['x/b > x/a 80/sctp'],
    blocked: ['x/b > x/a 80', 'x/b > x/a 80/udp', 'x/b > x/a 81/sctp'],
  },
  {
    name: "should properly isolate pods that are selected by a policy allowing SCTP, even if the plugin doesn't support SCTP",
    policies: [policy({ ...onA, ingress: [{ from: [pod('b')], ports: [{ protocol: 'SCTP' }] }] })],
    passes: ['y/a > x/b 80'],
    blocked: ['y/a > x/a 80', 'x/b > x/a 80'],
  },
  {
    name: 'should not allow access by TCP when a policy specifies only UDP',
    policies: [policy({ ...onA, ingress: [{ ports: [{ port: 81, protocol: 'UDP' }] }] })],
    passes: ['y/a > x/a 81/udp'],
    blocked: ['y/a > x/a 81', 'y/a > x/a 80/udp'],
  },
  {
    name: 'should enforce policy to allow traffic based on NamespaceSelector with MatchLabels using default ns label',
    policies: [policy({ ...onA, ingress: [{ from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'y' } } }] }] })],
    passes: ['y/a > x/a 80'],
    blocked: ['z/c > x/a 80', 'x/b > x/a 80'],
  },
  {
    name: 'should enforce policy based on NamespaceSelector with MatchExpressions using default ns label',
    policies: [
      policy({
        ...onA,
        ingress: [{ from: [{ namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['y'] }] } }] }],
      }),
    ],
    passes: ['x/b > x/a 80', 'z/c > x/a 80'],
    blocked: ['y/a > x/a 80'],
  },
  {
    name: 'endPort allows a range, whose ends belong to it',
    policies: [
      policy({ ...onA, ingress: [{ ports: [{ port: 70, endPort: 80 }] }] }),
      policy({ ...pod('b'), ingress: [{ ports: [{ port: 81, endPort: 90 }] }] }),
    ],
    passes: ['y/a > x/a 80', 'y/a > x/b 81'],
    blocked: ['y/a > x/a 81', 'y/a > x/b 80', 'y/a > x/a 80/udp'],
  },
  {
    name: 'ranges that overlap and touch each other',
    policies: [
      policy({
        ...onA,
        ingress: [{ ports: [{ port: 79, endPort: 80 }, { port: 1, endPort: 79 }, { port: 81 }, { port: 80 }, { port: 80, protocol: 'UDP' }] }],
      }),
    ],
    passes: ['y/a > x/a 80', 'y/a > x/a 81', 'y/a > x/a 80/udp'],
    blocked: ['y/a > x/a 81/udp'],
  },
  {
    name: 'rules of one policy are alternatives, peers and ports of one rule are not',
    policies: [
      policy({
        ...onA,
        ingress: [
          { from: [ns('y')], ports: [{ port: 80 }] },
          { from: [ns('z')], ports: [{ port: 81 }] },
        ],
      }),
    ],
    passes: ['y/a > x/a 80', 'z/c > x/a 81'],
    blocked: ['y/a > x/a 81', 'z/c > x/a 80'],
  },
  {
    name: 'a selector that no pod matches isolates and allows nothing',
    policies: [policy({ ...onA, ingress: [{ from: [{ podSelector: { matchLabels: { pod: 'none' } } }] }] })],
    passes: ['y/a > x/b 80'],
    blocked: everyone,
  },
  {
    name: 'deny-cross-namespace: the own namespace and one port of another',
    policies: [
      policy({
        policyTypes: both,
        ingress: [{ from: [{ podSelector: {} }] }],
        egress: [{ to: [{ podSelector: {} }] }, { to: [ns('z')], ports: [{ protocol: 'UDP', port: 81 }] }],
      }),
    ],
    passes: ['x/a > x/b 80', 'x/b > x/a 81/udp', 'x/a > z/c 81/udp'],
    blocked: ['x/a > z/c 81', 'x/a > z/c 80/udp', 'x/a > y/a 80', 'y/b > x/a 80', 'z/c > x/a 81/udp'],
  },
]
