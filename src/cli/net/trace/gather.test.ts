/** What `skiff net trace` asks the cluster and the node of the pod for, against a reader that answers from a table. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NetworkProbes } from '#api/debug/nodeNetwork'
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import { paths, type Reader } from '../reader.ts'
import { diagnose } from './diagnose.ts'
import { gatherFacts } from './gather.ts'
import { node, pod, service, verdict } from './testFacts.ts'

interface World {
  readonly service?: Service
  readonly slices?: readonly EndpointSlice[]
  readonly ingresses?: readonly Ingress[]
  /** What a probe that sends packets returns. */
  readonly probe?: NetworkProbes
}

const resolver = { servers: ['10.96.0.10'], searches: ['d.svc.cluster.local', 'svc.cluster.local'], options: ['ndots:5'] }
const backend = (address: string, nodeName: string, ready: boolean) => ({ addresses: [address], nodeName, conditions: { ready } })

function sliceOf(endpoints: readonly ReturnType<typeof backend>[], protocol = 'TCP'): EndpointSlice {
  return { metadata: { name: 's' }, addressType: 'IPv4', endpoints, ports: [{ name: 'http', port: 8080, protocol }] } as EndpointSlice
}

async function gathered(target: string, world: World, port?: string) {
  const connects: string[] = []
  const questions: unknown[] = []
  const objects = new Map<string, unknown>([
    [paths.pod('d', 'client'), pod('client', 'n1', '10.244.0.2')],
    [paths.service('d', 'web'), world.service],
    [paths.node('n1'), node('n1')],
    [paths.node('n2'), node('n2')],
  ])
  const lists = new Map<string, unknown>([
    [paths.slices('d'), world.slices],
    [paths.ingresses, world.ingresses],
  ])
  const reader = {
    get: async (path: string, query: { readonly connect?: readonly string[]; readonly resolve?: readonly string[] } = {}) => {
      if (!path.includes('networkprobes')) return { found: objects.get(path) }
      connects.push(...(query.connect ?? []))
      return { found: query.connect || query.resolve ? (world.probe ?? { resolver }) : { resolver } }
    },
    list: async (path: string) => ({ found: lists.get(path) ?? [] }),
    ask: async (path: string) => ({ status: 200, body: JSON.stringify(objects.get(path) ?? { items: [], metadata: {} }) }),
  } as unknown as Reader
  const explainPolicies = async (question: { readonly connection?: { readonly ports: unknown } | undefined }) => {
    questions.push(question.connection?.ports)
    return { verdicts: [verdict()] }
  }
  const deps = { reader, explainPolicies: explainPolicies as never, nowMs: 0 }
  const facts = await gatherFacts(deps, 'client', target, { namespace: 'd', port })
  return { facts, connects, questions }
}

test('SVC-13 skiff net trace does not blame the name when the node could not ask for it', async () => {
  const { facts } = await gathered('web', { service, probe: { note: 'the node makes 4 probes already' } })
  assert.deepEqual([facts.resolver, facts.answers], [{ notShown: 'the node makes 4 probes already' }, []])
  assert.equal(diagnose(facts).hops.find(({ hop }) => hop === 'name')?.state, 'unknown')
})

test('SVC-13 skiff net trace counts all endpoints, and looks at those that are ready and on the node of the pod first', async () => {
  const down = ['1', '2', '3', '4', '5'].map((end) => backend(`10.244.9.${end}`, 'n2', false))
  const slices = [sliceOf([...down, backend('10.244.1.2', 'n2', true), backend('10.244.0.7', 'n1', true)])]
  const { facts, connects } = await gathered('svc/web', { service, slices })
  assert.deepEqual(
    facts.destinations.map(({ address }) => address),
    ['10.244.0.7', '10.244.1.2', '10.244.9.1', '10.244.9.2'],
  )
  assert.deepEqual(connects, ['tcp/10.96.0.5/80', 'tcp/10.244.0.7/8080', 'tcp/10.244.1.2/8080'])
  assert.match(diagnose(facts).hops.find(({ hop }) => hop === 'endpoints')?.text ?? '', /^2 of 7 ready: .* and 3 more$/)
})

test('SVC-13 skiff net trace asks the policies about the protocol of the port, and probes ports of TCP only', async () => {
  const udp = { ...service, spec: { ...service.spec, ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'UDP' }] } } as Service
  const { facts, connects, questions } = await gathered('svc/web', { service: udp, slices: [sliceOf([backend('10.244.1.2', 'n2', true)], 'UDP')] })
  assert.deepEqual(questions, [[{ protocol: 'UDP', port: 8080 }]])
  assert.deepEqual([connects, facts.notProbed], [[], 'only ports of TCP are probed, and this is one of UDP'])
})

test('SVC-13 skiff net trace takes the port of TCP when a number means one of each protocol', async () => {
  const ports = ['UDP', 'TCP'].map((protocol) => ({ name: protocol.toLowerCase(), port: 53, protocol }))
  const { facts } = await gathered('svc/web', { service: { ...service, spec: { ...service.spec, ports } } as Service }, '53')
  assert.equal(facts.service?.port?.name, 'tcp')
})

const answered = { resolver, answers: [{ name: 'www.example.org', type: 'A', server: '10.96.0.10', code: 'NOERROR', records: ['192.0.2.9'] }] } as const
for (const [title, tls, connect] of [
  ['80', [], 'tcp/192.0.2.9/80'],
  ['443 with a certificate for the host', [{ hosts: ['www.example.org'] }], 'tls/192.0.2.9/443/www.example.org'],
] as const) {
  test(`SVC-13 skiff net trace connects to the host of an Ingress without a port on ${title}`, async () => {
    const ingress = { metadata: { namespace: 'd', name: 'web' }, spec: { rules: [{ host: 'www.example.org' }], tls } } as unknown as Ingress
    assert.deepEqual((await gathered('www.example.org', { ingresses: [ingress], probe: answered })).connects, [connect])
  })
}
