import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionEnd, ConnectionQuestion } from '#api/debug/networkPolicy'
import type { NetworkPolicy, NetworkPolicySpec } from '#api/gen/types/networking.v1'
import { explainPolicies } from './explain.ts'
import { namespaceLabels, outside, podObject, policyCases, probeOf, type TestPod } from './testCases.ts'

const namespaces = ['x', 'y', 'z'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: namespaceLabels(name) } }))

const endOf = (pod: TestPod): ConnectionEnd => (pod === outside ? { address: pod.addresses.IPv4 } : { pod: podObject(pod) })

function verdict(text: string, policies: readonly NetworkPolicy[]) {
  const { from, to, port, protocol } = probeOf(text)
  const ports: ConnectionQuestion['ports'] = [{ protocol: protocol.toUpperCase() as 'TCP', port }]
  const pod = podObject(from === outside ? to : from)
  const [found] = explainPolicies({ pod, policies, namespaces, connection: { source: endOf(from), destination: endOf(to), ports } }).verdicts
  assert.ok(found)
  return found
}

for (const { name, policies, passes, blocked } of policyCases) {
  test(`NPO-02 explainPolicies allows the connections that the kernel's rules allow: ${name}`, () => {
    assert.deepEqual(
      [...passes, ...blocked].filter((text) => verdict(text, policies).allowed),
      passes,
    )
  })
}

function policy(name: string, spec: NetworkPolicySpec): NetworkPolicy {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name, namespace: 'x' }, spec }
}

const policies = [
  policy('deny', { podSelector: {}, policyTypes: ['Ingress'] }),
  policy('web', {
    podSelector: { matchLabels: { pod: 'a' } },
    ingress: [
      { from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.244.0.0/16'] } }] },
      { from: [{ namespaceSelector: { matchLabels: { ns: 'y' } }, podSelector: {} }, { podSelector: { matchLabels: { pod: 'b' } } }], ports: [{ port: 80 }] },
    ],
    egress: [{ ports: [{ protocol: 'UDP', port: 53 }, { port: 8000, endPort: 8080 }, { protocol: 'SCTP' }] }],
    policyTypes: ['Ingress', 'Egress'],
  }),
]

test('NPO-02 explainPolicies names the policies that select a pod, with their rules in words', () => {
  const { selectedBy } = explainPolicies({ pod: podObject(probeOf('x/a > x/b 80').from), policies, namespaces })
  assert.deepEqual(selectedBy, {
    ingress: [
      { policy: 'x/deny', rules: [] },
      {
        policy: 'x/web',
        rules: ['from 10.0.0.0/8 except 10.244.0.0/16: every port', 'from all pods in namespaces with ns=y or pods with pod=b of the namespace: TCP 80'],
      },
    ],
    egress: [{ policy: 'x/web', rules: ['to everywhere: UDP 53, TCP 8000-8080, every SCTP port'] }],
  })
})

test('NPO-02 explainPolicies names the rule that allows a connection, and the policies of which none does', () => {
  assert.deepEqual(
    ['x/b > x/a 80', 'x/b > x/a 81', 'y/a > x/b 80'].map((text) => verdict(text, policies).checks.at(-1)),
    [
      { direction: 'ingress', of: 'x/a', allowed: true, because: 'policies', policies: [rules('x/deny'), rules('x/web', 2)] },
      { direction: 'ingress', of: 'x/a', allowed: false, because: 'policies', policies: [rules('x/deny'), rules('x/web')] },
      { direction: 'ingress', of: 'x/b', allowed: false, because: 'policies', policies: [rules('x/deny')] },
    ],
  )
})

const rules = (policy: string, ...numbers: number[]) => ({ policy, rules: numbers })

test('NPO-02 explainPolicies lets a node and its own pods reach each other, but no other node', () => {
  const { to } = probeOf('x/b > x/a 80')
  const pod = { ...podObject(to), status: { ...podObject(to).status, hostIPs: [{ ip: '10.88.0.2' }] } }
  const allowed = (source: ConnectionEnd) =>
    explainPolicies({ pod, policies, namespaces, connection: { source, destination: { pod }, ports: [{ protocol: 'TCP', port: 80 }] } }).verdicts[0]?.allowed
  const onNode = (ip: string) => ({
    pod: { ...pod, metadata: { ...pod.metadata, name: 'c' }, spec: { ...pod.spec, hostNetwork: true }, status: { podIPs: [{ ip }] } },
  })
  assert.deepEqual([allowed({ address: '10.88.0.2' }), allowed(onNode('10.88.0.2')), allowed({ pod })], [true, true, true])
  assert.deepEqual([allowed({ address: '11.88.0.3' }), allowed(onNode('11.88.0.3'))], [false, false])
})
