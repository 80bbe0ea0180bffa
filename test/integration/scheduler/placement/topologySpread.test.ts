/** PodTopologySpread, case by case. Upstream: plugins/podtopologyspread (v1.36). */
import type { Node, Pod, PodSpec, Service, Taint, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { replicaSets, services } from '#client/builtIn'
import type { Resource } from '#client/client'
import { type Case, type NodeSketch, node, placements, pod } from './table.ts'

const zone = 'topology.kubernetes.io/zone'
const host = 'kubernetes.io/hostname'
const web = { matchLabels: { app: 'web' } }
const hard = (topologyKey: string, maxSkew = 1, changes: Partial<TopologySpreadConstraint> = {}): TopologySpreadConstraint => ({
  maxSkew,
  topologyKey,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: web,
  ...changes,
})
const soft = (topologyKey: string, maxSkew = 1, changes: Partial<TopologySpreadConstraint> = {}) =>
  hard(topologyKey, maxSkew, { whenUnsatisfiable: 'ScheduleAnyway', ...changes })

const inZone = (name: string, value: string, more: NodeSketch = {}): Node => node(name, { ...more, labels: { [zone]: value, ...more.labels } })
/** Two zones of two nodes each. */
const four = [inZone('a', '1'), inZone('b', '1'), inZone('x', '2'), inZone('y', '2')]
const three = four.slice(0, 3)
/** One pod of the application for each letter, on the node of that name. */
const web$ = (on: string, labels: Record<string, string> = { app: 'web' }): Pod[] => [...on].map((name) => pod({ on: name, labels }))
const wanting = (constraints: TopologySpreadConstraint[], spec: Partial<PodSpec> = {}, labels: Record<string, string> = { app: 'web' }) =>
  pod({ labels, spec: { topologySpreadConstraints: constraints, ...spec } })
const spread = (
  name: string,
  constraints: TopologySpreadConstraint[],
  on: string,
  fits: string,
  nodes: readonly Node[] = four,
  spec: Partial<PodSpec> = {},
): Case => ({
  name,
  pod: wanting(constraints, spec),
  nodes,
  placed: web$(on),
  fits,
})
const uneven = "node(s) didn't match pod topology spread constraints"
const all = (n: number, what: string) => `0/${n} nodes are available: ${n} ${what}.`
const other: Taint = { key: 'dedicated', effect: 'NoSchedule' }

placements('SCH-08', 'PodTopologySpread', [
  { name: 'no constraint', pod: pod(), nodes: four, placed: web$('aaaa'), fits: 'a b x y' },
  spread('nobody there', [hard(zone)], '', 'a b x y'),
  spread('as many here as there', [hard(zone)], 'aabbxxyy', 'a b x y'),
  spread('fewer there', [hard(zone)], 'aabxy', 'x y'),
  spread('a skew that is allowed', [hard(zone, 2)], 'aabxy', 'a b x y'),
  spread('by host', [hard(host)], 'aabyyy', 'x'),
  spread('by host, two more allowed', [hard(host, 2)], 'aabyyy', 'b x'),
  { name: 'a pod that is not one of them', pod: wanting([hard(host)], {}, { app: 'other' }), nodes: four, placed: web$('aabyyy'), fits: 'b x' },
  { name: 'a pod that its own selector does not match, no matching pods', pod: wanting([hard(zone)], {}, {}), nodes: four, fits: 'a b x y' },
  { name: 'other pods do not count', pod: wanting([hard(zone)]), nodes: four, placed: web$('aaab', { app: 'other' }), fits: 'a b x y' },
  {
    name: 'pods of other namespaces do not count',
    pod: wanting([hard(zone)]),
    nodes: four,
    placed: ['a', 'a'].map((on) => pod({ on, namespace: 'other', labels: { app: 'web' } })),
    fits: 'a b x y',
  },
  {
    name: 'pods that are being deleted do not count',
    pod: wanting([hard(zone)]),
    nodes: four,
    placed: web$('aab').map((one) => ({ ...one, metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })),
    fits: 'a b x y',
  },
  { name: 'a selector that selects nothing special', pod: wanting([hard(zone, 1, { labelSelector: {} })]), nodes: four, placed: web$('ab', {}), fits: 'x y' },
  {
    name: 'a constraint without a selector selects no pods',
    pod: wanting([{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' }]),
    nodes: four,
    placed: web$('ab'),
    fits: 'a b x y',
  },
  {
    name: 'two nodes may be one domain',
    pod: wanting([hard(host)]),
    nodes: [inZone('a', '1'), inZone('b', '1', { labels: { [host]: 'a' } })],
    placed: web$('a'),
    fits: 'a b',
  },
  spread('two constraints both hold somewhere', [hard(zone), hard(host)], 'abyy', 'x', four),
  spread('two constraints that no node meets', [hard(zone), hard(host)], 'aax', '', three),
  {
    name: 'two constraints, one node left',
    pod: wanting([hard(zone), hard(host)]),
    nodes: [inZone('a', '1'), inZone('x', '2')],
    placed: [...web$('a'), ...web$('a')],
    fits: 'x',
  },
  {
    name: 'nodes without the label cannot take the pod',
    pod: wanting([hard(zone)]),
    nodes: [node('a'), node('b')],
    message: all(2, `${uneven} (missing required label)`),
    code: 'UnschedulableAndUnresolvable',
  },
  spread('a node without the label is no domain', [hard(zone)], 'bx', 'a b x', [...three, node('c')]),
  { name: 'pods on a node without the label do not count', pod: wanting([hard(zone)]), nodes: [...three, node('c')], placed: web$('ccab'), fits: 'x' },
  {
    name: 'a node that lacks one of two labels does not count for the other either',
    pod: wanting([hard(zone), hard('rack')]),
    nodes: [inZone('a', '1', { labels: { rack: 'r1' } }), inZone('b', '1'), inZone('x', '2', { labels: { rack: 'r2' } })],
    placed: web$('bb'),
    fits: 'a x',
  },
  spread('fewer domains than wanted: the fewest are none', [hard(zone, 1, { minDomains: 3 })], 'abxy', ''),
  spread('fewer domains than wanted, room for two', [hard(zone, 2, { minDomains: 3 })], 'ax', 'a b x y'),
  spread('as many domains as wanted', [hard(zone, 1, { minDomains: 2 })], 'abxy', 'a b x y'),
  spread('more domains than wanted', [hard(zone, 1, { minDomains: 1 })], 'ax', 'a b x y'),
  {
    name: 'a message for too few domains',
    pod: wanting([hard(zone, 1, { minDomains: 3 })]),
    nodes: four,
    placed: web$('ax'),
    message: all(4, uneven),
    code: 'Unschedulable',
  },
  spread('zones that the pod cannot go to do not count', [hard(zone)], 'ab', 'a b x y', four, { nodeSelector: { [zone]: '1' } }),
  spread('unless they shall', [hard(zone, 1, { nodeAffinityPolicy: 'Ignore' })], 'ab', 'x y', four, { nodeSelector: { [zone]: '1' } }),
  spread('tainted nodes count', [hard(zone)], 'a', 'x', [inZone('a', '1'), inZone('x', '2', { taints: [other] })]),
  spread('unless they shall not', [hard(zone, 1, { nodeTaintsPolicy: 'Honor' })], 'a', 'a x', [inZone('a', '1'), inZone('x', '2', { taints: [other] })]),
  spread('a tolerated taint is none', [hard(zone, 1, { nodeTaintsPolicy: 'Honor' })], 'a', 'x', [inZone('a', '1'), inZone('x', '2', { taints: [other] })], {
    tolerations: [{ operator: 'Exists' }],
  }),
  {
    name: 'only pods of the same revision',
    pod: wanting([hard(zone, 1, { matchLabelKeys: ['revision'] })], {}, { app: 'web', revision: '2' }),
    nodes: four,
    placed: [...web$('aab', { app: 'web', revision: '1' }), ...web$('x', { app: 'web', revision: '2' })],
    fits: 'a b',
  },
  {
    name: 'a label key that the pod does not have is left out',
    pod: wanting([hard(zone, 1, { matchLabelKeys: ['revision'] })]),
    nodes: four,
    placed: web$('aab', { app: 'web', revision: '1' }),
    fits: 'x y',
  },
  spread('soft constraints keep nobody out', [soft(zone)], 'aaaa', 'a b x y'),
  {
    name: 'default constraints apply to pods of a service',
    pod: pod({ labels: { app: 'web' } }),
    nodes: four,
    placed: web$('ab'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    args: { defaultingType: 'List', defaultConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' }] },
    fits: 'x y',
  },
  {
    name: 'default constraints do not apply to a pod without a service or controller',
    pod: pod({ labels: { app: 'web' } }),
    nodes: four,
    placed: web$('ab'),
    args: { defaultingType: 'List', defaultConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' }] },
    fits: 'a b x y',
  },
  {
    name: 'a pod’s own constraints replace the profile’s',
    pod: wanting([soft(host)]),
    nodes: four,
    placed: web$('ab'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    args: { defaultingType: 'List', defaultConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' }] },
    fits: 'a b x y',
  },
])

function service(app: string): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: app, namespace: 'default' }, spec: { selector: { app } }, status: {} }
}

const scored = (
  name: string,
  constraints: TopologySpreadConstraint[],
  on: string,
  scores: Record<string, number>,
  nodes: readonly Node[] = four,
  spec: Partial<PodSpec> = {},
): Case => ({
  name,
  pod: wanting(constraints, spec),
  nodes,
  placed: web$(on),
  scores,
})
// A domain's pods times ln(domains + 2), plus maxSkew - 1; the lowest of all becomes 100.
placements('SCH-08', 'PodTopologySpread', [
  { name: 'score: no soft constraint', pod: wanting([hard(zone)]), nodes: four, scores: 'skip' },
  { name: 'score: a pod of no service', pod: pod({ labels: { app: 'web' } }), nodes: four, placed: web$('aa'), scores: 'skip' },
  scored('score: nobody there', [soft(zone)], '', { a: 100, b: 100, x: 100, y: 100 }),
  // 2 and 1 times ln 4: 3 and 1
  scored('score: two here, one there', [soft(host)], 'aab', { a: 33, b: 100 }, four.slice(0, 2)),
  scored('score: as many everywhere', [soft(host)], 'ab', { a: 100, b: 100 }, four.slice(0, 2)),
  // 2, 1, 0 and 3 times ln 6: 4, 2, 0, 5
  scored('score: by host', [soft(host)], 'aabyyy', { a: 20, b: 60, x: 100, y: 0 }),
  // the same plus one each: 5, 3, 1, 6
  scored('score: a greater skew says less', [soft(host, 2)], 'aabyyy', { a: 33, b: 66, x: 100, y: 16 }),
  // 3 and 1 times ln 4: 4 and 1
  scored('score: by zone', [soft(zone)], 'aabx', { a: 25, b: 25, x: 100, y: 100 }),
  // zone 4 or 1 (3 and 1 of ln 4), host 2, 1, 1, 0 of ln 6: 4.16+3.58, 4.16+1.79, 1.39+1.79, 1.39
  scored('score: by zone and host', [soft(zone), soft(host)], 'aabx', { a: 12, b: 37, x: 75, y: 100 }),
  // node c is left out: 1 and 0 times ln 4
  {
    name: 'score: a node without the label gets nothing',
    pod: wanting([soft(zone)]),
    nodes: [inZone('a', '1'), inZone('x', '2'), node('c')],
    placed: web$('a'),
    scores: { a: 0, x: 100, c: 0 },
  },
  scored('score: nodes that the pod cannot go to do not count', [soft(zone)], 'aa', { a: 100, b: 100, x: 100, y: 100 }, four, {
    nodeSelector: { [zone]: '2' },
  }),
  scored('score: unless they shall', [soft(zone, 1, { nodeAffinityPolicy: 'Ignore' })], 'aa', { a: 0, b: 0, x: 100, y: 100 }, four, {
    nodeSelector: { [zone]: '2' },
  }),
  {
    name: 'score: system default constraints spread pods of a service',
    pod: pod({ labels: { app: 'web' } }),
    nodes: four,
    placed: web$('aab'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    // host 2, 1, 0, 0 of ln 6 plus 2; zone 3 or 0 of ln 4 plus 4: 14, 12, 6, 6
    scores: { a: 42, b: 57, x: 100, y: 100 },
  },
  {
    name: 'score: pods of a replica set',
    pod: ownedByReplicaSet('web'),
    nodes: four,
    placed: web$('ax'),
    objects: [[replicaSets as unknown as Resource<KubeObject>, [replicaSet('web')]]],
    // host 1, 0, 1, 0 of ln 6 plus 2; zone 1 of ln 4 plus 4: 9, 7, 9, 7
    scores: { a: 77, b: 100, x: 77, y: 100 },
  },
  {
    name: 'score: by default nodes without a zone count for their host',
    pod: pod({ labels: { app: 'web' } }),
    nodes: [node('a'), node('b')],
    placed: web$('aa'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    // 2 and 0 of ln 4 plus 2: 5 and 2
    scores: { a: 40, b: 100 },
  },
  {
    name: 'score: the profile’s own list',
    pod: pod({ labels: { app: 'web' } }),
    nodes: four,
    placed: web$('aab'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    args: { defaultingType: 'List', defaultConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'ScheduleAnyway' }] },
    scores: { a: 0, b: 0, x: 100, y: 100 },
  },
  {
    name: 'score: an empty list of the profile',
    pod: pod({ labels: { app: 'web' } }),
    nodes: four,
    placed: web$('aab'),
    objects: [[services as unknown as Resource<KubeObject>, [service('web')]]],
    args: { defaultingType: 'List', defaultConstraints: [] },
    scores: 'skip',
  },
])

function replicaSet(app: string): KubeObject {
  const spec = { replicas: 3, selector: { matchLabels: { app } }, template: { metadata: { labels: { app } }, spec: { containers: [] } } }
  return { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: app, namespace: 'default', uid: 'rs' }, spec, status: { replicas: 0 } } as KubeObject
}

function ownedByReplicaSet(app: string): Pod {
  const owned = pod({ labels: { app } })
  owned.metadata.ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, uid: 'rs', controller: true }]
  return owned
}
