/** Compares the counts that topology plugins keep with a full count, and preemption trials with the real changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import { services } from '#client/builtIn'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { CycleState } from '../../framework/cycleState.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import { podInfo } from '../../framework/podInfo.ts'
import { SchedulerCache } from '../../schedulerCache.ts'
import { DomainTables } from './domainTables.ts'
import { HeldTerms } from './heldTerms.ts'

const zone = 'topology.kubernetes.io/zone'
const apart = (app: string, topologyKey: string): PodSpec['affinity'] => ({
  podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: { matchLabels: { app } } }] },
})
const zoned = (name: string, value: string | undefined): Node => nodeOf({ name, labels: value === undefined ? {} : { [zone]: value } })
const placed = (name: string, nodeName: string, app: string, spec: Partial<PodSpec> = {}): Pod => podOf(name, { nodeName, ...spec }, {}, { app })

const nodeName = fc.constantFrom('n1', 'n2', 'n3', 'n4')
const app = fc.constantFrom('a', 'b')
const change = fc.oneof(
  fc.record({ type: fc.constant('node' as const), name: nodeName, zone: fc.constantFrom('x', 'y', 'z', undefined) }),
  fc.record({ type: fc.constant('nodeGone' as const), name: nodeName }),
  fc.record({ type: fc.constant('pod' as const), name: fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5', 'p6'), on: nodeName, app, apart: fc.boolean() }),
  fc.record({ type: fc.constant('podGone' as const), name: fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5', 'p6') }),
)

function domainsOf(nodes: readonly NodeInfo[], counts: (pod: Pod) => boolean): Map<string, number> {
  const domains = new Map<string, number>()
  for (const node of nodes) {
    const value = node.node.metadata.labels?.[zone]
    if (value === undefined) continue
    domains.set(value, (domains.get(value) ?? 0) + [...node.pods.values()].filter(({ pod }) => counts(pod as Pod)).length)
  }
  return domains
}

test('SCH-09 SCH-10 counts that follow the placements equal a full count, after any changes', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const cache = new SchedulerCache()
      const tables = new DomainTables()
      const held = new HeldTerms(({ requiredAntiAffinity }) => requiredAntiAffinity.map((term) => [term, 1]))
      cache.maintain(tables)
      cache.maintain(held)
      const shape = () => ({ topologyKey: zone, counts: ({ pod }: { pod: { metadata: { labels?: unknown } } }) => (pod as Pod).metadata.labels?.app === 'a' })
      tables.get('a', cache, shape)
      const pods = new Map<string, Pod>()
      for (const [i, one] of changes.entries()) {
        if (one.type === 'node') cache.setNode(zoned(one.name, one.zone))
        else if (one.type === 'nodeGone') cache.removeNode(one.name)
        else if (one.type === 'pod') {
          const pod = placed(one.name, one.on, one.app, one.apart ? { affinity: apart('a', zone) } : {})
          pod.metadata.generation = i
          // The affinity of a pod with a node is final: another one is another pod's.
          pod.metadata.uid = `${one.name}-${one.apart}`
          pods.set(one.name, pod)
          cache.setPod(pod)
        } else {
          const pod = pods.get(one.name)
          if (pod) cache.removePod(pod)
        }
        const wanted = domainsOf(cache.nodes, (pod) => pod.metadata.labels?.app === 'a')
        const table = tables.get('a', cache, shape)
        assert.deepEqual(
          [table.size, table.fewest(), table.total, ...[...wanted.keys()].map((value) => table.inDomain(value))],
          [wanted.size, wanted.size === 0 ? undefined : Math.min(...wanted.values()), [...wanted.values()].reduce((a, b) => a + b, 0), ...wanted.values()],
        )
        assert.deepEqual(
          cache.nodes.map((node) => [table.around(node), table.around(node.clone())]),
          cache.nodes.map(({ node }) => {
            const around = wanted.get(node.metadata.labels?.[zone] ?? '')
            return [around, around]
          }),
        )
        const holders = [...domainsOf(cache.nodes, (pod) => pod.spec.affinity !== undefined)].filter(([, count]) => count > 0)
        const about = held.about(podOf('new', {}, {}, { app: 'a' }), undefined)
        assert.deepEqual(new Map(about.flatMap(({ domains }) => [...domains])), new Map(holders))
        const holding = [...pods.values()].filter(({ metadata, spec }) => spec.affinity && cache.placementOf(`default/${metadata.name}`))
        for (const { isMutual } of about)
          assert.equal(
            isMutual,
            holding.every(({ metadata }) => metadata.labels?.app === 'a'),
          )
      }
    }),
    { numRuns: 200, seed: 1 },
  )
})

const incoming = fc.constantFrom<Partial<PodSpec>>(
  { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'a' } } }] },
  {
    topologySpreadConstraints: [
      { maxSkew: 2, minDomains: 3, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'a' } } },
      { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'b' } } },
    ],
  },
  { affinity: apart('b', zone) as NonNullable<PodSpec['affinity']> },
  // What placed pods hold too, and keep away by it from others, or from each other.
  { affinity: apart('a', zone) as NonNullable<PodSpec['affinity']> },
  { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: zone, labelSelector: { matchLabels: { app: 'b' } } }] } } },
  {},
)

test('SCH-15 what preemption tries on a clone is refused and allowed as it would be after doing it', () => {
  const existing = fc.array(fc.record({ on: nodeName, app, apart: fc.boolean() }), { minLength: 1, maxLength: 8 })
  const zones = fc.tuple(fc.constantFrom('x', 'y', undefined), fc.constantFrom('x', 'y'), fc.constantFrom('y', 'z'), fc.constant('x'))
  fc.assert(
    fc.property(zones, existing, incoming, fc.nat(), fc.boolean(), (values, running, spec, pick, adds) => {
      const nodes = values.map((value, i) => zoned(`n${i + 1}`, value))
      const pods = running.map(({ on, app, apart: keepsAway }, i) => placed(`p${i}`, on, app, keepsAway ? { affinity: apart('a', zone) } : {}))
      const moved = pods[pick % pods.length] as Pod
      const others = pods.filter((pod) => pod !== moved)
      const [before, after] = adds ? [others, pods] : [pods, others]
      const pod = podInfo(podOf('new', spec, {}, { app: 'a' }))
      const ask = (running: readonly Pod[], tryMoved: boolean) => {
        const { cache, profile } = schedulerFixture({ nodes, placed: running })
        const mine = ({ name }: { readonly name: string }) => name === 'PodTopologySpread' || name === 'InterPodAffinity'
        const state = new CycleState()
        for (const plugin of profile.points.preFilter.filter(mine)) if (plugin.preFilter(state, pod, cache) === 'skip') state.skipFilter.add(plugin.name)
        const asked = profile.points.filter.filter((plugin) => mine(plugin) && !state.skipFilter.has(plugin.name))
        const target = cache.get(moved.spec.nodeName ?? '') as NodeInfo
        const answers = cache.nodes.map((node) => {
          const clone = state.clone()
          for (const plugin of tryMoved ? asked : []) {
            if (adds) plugin.addPod?.(clone, pod, podInfo(moved), target)
            else plugin.removePod?.(clone, pod, podInfo(moved), target)
          }
          return asked.map((plugin) => plugin.filter(clone, pod, node)?.reasons).filter((reason) => reason !== undefined)
        })
        return { answers, skips: state.skipFilter.size > 0 }
      }
      const tried = ask(before, true)
      // A plugin that skips a pod gets no preemption trials either, as upstream.
      fc.pre(!(adds && tried.skips))
      assert.deepEqual(tried.answers, ask(after, false).answers)
    }),
    { numRuns: 300, seed: 1 },
  )
})

test('SCH-10 a term knows whether all its holders are pods that it is about, labels change', () => {
  const cache = new SchedulerCache()
  const held = new HeldTerms(({ requiredAntiAffinity }) => requiredAntiAffinity.map((term) => [term, 1]))
  cache.maintain(held)
  cache.setNode(zoned('n1', 'x'))
  const incoming = podOf('new', {}, {}, { app: 'a' }) as never
  const isMutual = () => held.about(incoming, undefined).map((one) => one.isMutual)
  const first = placed('p1', 'n1', 'a', { affinity: apart('a', zone) })
  const labels = (app: string): Pod => ({ ...first, metadata: { ...first.metadata, labels: { app } } })
  const seen = [first, labels('b'), labels('a'), labels('b')].map((pod) => {
    cache.setPod(pod as never)
    return isMutual()
  })
  assert.deepEqual(seen, [[true], [false], [true], [false]])
})

test('SCH-10 a pod with more than a hundred terms goes where each of them lets it', () => {
  const nodes = [zoned('n1', 'x'), zoned('n2', 'y')]
  const fixture = schedulerFixture({ nodes, placed: [placed('p1', 'n1', 'b')] })
  const term = (topologyKey: string) => ({ topologyKey, labelSelector: { matchLabels: { app: 'b' } } })
  const absent = Array.from({ length: 150 }, (_, at) => term(`absent-${at}`))
  const decided = (kind: 'podAffinity' | 'podAntiAffinity', terms: readonly object[]) =>
    fixture.decide(podOf('new', { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: terms } } } as never, {}, { app: 'a' }))
  assert.deepEqual(decided('podAntiAffinity', [...absent, term(zone)]), { on: 'n2' })
  assert.deepEqual(decided('podAntiAffinity', [...absent.map(() => term(zone))]), { on: 'n2' })
  assert.deepEqual(
    decided(
      'podAffinity',
      absent.map(() => term(zone)),
    ),
    { on: 'n1' },
  )
  assert.deepEqual(decided('podAffinity', [...absent, term(zone)]), decided('podAffinity', [term('absent-0')]))
})

test('SCH-09 the default constraints spread the pods of a service gently: nothing is refused, the emptier zone wins', () => {
  const nodes = [zoned('n1', 'x'), zoned('n2', 'y')]
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's', namespace: 'default' }, spec: { selector: { app: 'a' } } }
  const fixture = schedulerFixture({ nodes, placed: [placed('p1', 'n1', 'a'), placed('p2', 'n1', 'a')], objects: [[services as never, [service as never]]] })
  assert.deepEqual(fixture.decide(podOf('new', {}, {}, { app: 'a' })), { on: 'n2' })
})
