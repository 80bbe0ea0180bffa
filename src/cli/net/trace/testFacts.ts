/** Facts of a connection that gets through, for tests (L4): a pod on n1 reaches a Service whose one pod is on n2. Tests break one thing at a time. */
import type { ConnectionVerdict } from '#api/debug/networkPolicy'
import type { ConnectionResult } from '#api/debug/nodeNetwork'
import type { Node, Pod, Service } from '#api/gen/types/core.v1'
import type { Destination, ServiceFacts, TraceFacts } from './facts.ts'

export function node(name: string, ready = true): Node {
  const condition = { type: 'Ready', status: ready ? 'True' : 'Unknown', message: ready ? '' : 'Kubelet stopped posting node status.' }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: {}, status: { conditions: [condition] } } as unknown as Node
}

export function pod(name: string, nodeName: string, podIP: string, more: Partial<Pod['spec']> = {}): Pod {
  const containers = [{ name: 'app', image: 'web', ports: [{ name: 'http', containerPort: 8080 }] }]
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'd', labels: { app: name } }, spec: { nodeName, containers, ...more }, status } as Pod
}

export function verdict(allowed = true): ConnectionVerdict {
  const policies = allowed ? [] : [{ policy: 'd/deny', rules: [] }]
  const check = { direction: 'ingress', of: 'd/web', allowed, because: allowed ? 'notIsolated' : 'policies', policies } as const
  return { source: 'd/client', destination: 'd/web', protocol: 'TCP', port: 8080, allowed, checks: [check] }
}

export function result(address: string, port: number, outcome = 'connected', more: Partial<ConnectionResult> = {}): ConnectionResult {
  return { address, port, protocol: 'tcp', outcome, ...more }
}

export const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'd' },
  spec: { type: 'ClusterIP', clusterIP: '10.96.0.5', selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }] },
  status: {},
}

export const destination: Destination = {
  address: '10.244.1.2',
  port: 8080,
  protocol: 'TCP',
  ready: true,
  node: 'n2',
  pod: pod('web', 'n2', '10.244.1.2'),
  verdict: { found: verdict() },
}

export const serviceFacts: ServiceFacts = {
  namespace: 'd',
  name: 'web',
  service: { found: service },
  port: service.spec.ports?.[0],
  endpoints: {
    found: [{ address: '10.244.1.2', port: 8080, ready: true, serving: true, terminating: false, node: 'n2', hints: [] }],
  },
  selected: { found: [pod('web', 'n2', '10.244.1.2')] },
  others: { found: [] },
  rules: { found: { mode: 'nftables', rules: [{ place: 'service-ips 10.96.0.5', lines: ['goto service-web'] }] } },
  isExternal: false,
}

export const good: TraceFacts = {
  nowMs: Date.parse('2026-06-01T00:00:00Z'),
  pod: pod('client', 'n1', '10.244.0.2'),
  target: { text: 'web', host: 'web', isTls: false },
  nodes: new Map([
    ['n1', { found: node('n1') }],
    ['n2', { found: node('n2') }],
  ]),
  routes: new Map([
    ['n1', { found: { mode: 'host-gw', routes: [{ cidr: '10.244.1.0/24', via: '10.88.0.11', device: 'eth0', state: 'present' }] } }],
    ['n2', { found: { mode: 'host-gw', routes: [{ cidr: '10.244.0.0/24', via: '10.88.0.10', device: 'eth0', state: 'present' }] } }],
  ]),
  resolver: { found: { servers: ['10.96.0.10'], searches: ['d.svc.cluster.local'], options: ['ndots:5'] } },
  answers: [{ name: 'web.d.svc.cluster.local', type: 'A', server: '10.96.0.10', code: 'NOERROR', records: ['10.96.0.5'] }],
  service: serviceFacts,
  destinations: [destination],
  front: result('10.96.0.5', 80),
  direct: [result('10.244.1.2', 8080)],
}
