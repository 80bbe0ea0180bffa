import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { NetworkPolicy } from '#api/gen/types/networking.v1'
import { parseCidr } from '#api/machinery/ip'
import { seededRandom } from '#base/random'
import { compilePolicy } from './compilePolicy.ts'
import { podFactsOf, slimPod } from './facts.ts'
import { directions } from './isolations.ts'
import { complete, PolicyModel } from './model.ts'
import { createPolicyRenderer } from './nftables.ts'
import { merged, rangeOfBlock, without } from './ranges.ts'
import type { Connection } from './terms.ts'
import { connectionOf, modelOf, namespaceLabels, outside, podObject, policyCases, probeOf, type Stack, testPods } from './testCases.ts'

const stacks: readonly Stack[] = ['IPv4', 'IPv6']
const passes = (model: PolicyModel, connection: Connection) => model.allows('egress', connection) && model.allows('ingress', connection)

for (const { name, policies, passes: open, blocked } of policyCases) {
  test(`NPO-02 ${name}`, () => {
    const model = modelOf(policies)
    for (const stack of stacks) {
      const passing = [...open, ...blocked].filter((text) => passes(model, connectionOf(probeOf(text), stack)))
      assert.deepEqual(passing, open)
    }
  })
}

test('NPO-02 pods on the host’s network, finished pods and pods without an address are no peers and not isolated', () => {
  const all: NetworkPolicy = {
    apiVersion: 'v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'all', namespace: 'x' },
    spec: { podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] },
  }
  const b = podObject(testPods[1] as never)
  const variants: [string, Pod, boolean][] = [
    ['as it is', b, true],
    ['on the host’s network', { ...b, spec: { ...b.spec, hostNetwork: true } }, false],
    ['succeeded', { ...b, status: { ...b.status, phase: 'Succeeded' } }, false],
    ['failed', { ...b, status: { ...b.status, phase: 'Failed' } }, false],
    ['without an address', { ...b, status: {} }, false],
    ['with an address that is none', { ...b, status: { podIPs: [{ ip: '10.244.1.12 }; flush ruleset' }] } }, false],
  ]
  for (const [name, pod, isPeer] of variants) {
    const model = modelOf([all])
    complete(model.updatePod('x/b', podFactsOf(slimPod(pod))))
    complete(model.settle())
    assert.equal(passes(model, connectionOf(probeOf('x/b > x/a 80'), 'IPv4')), isPeer, name)
    assert.equal(
      [...model.isolated('ingress')].some(([address]) => address === '10.244.1.12'),
      isPeer,
      name,
    )
    assert.equal(passes(model, connectionOf(probeOf('x/a > x/b 80'), 'IPv4')), true, name)
  }
})

test('NPO-02 a pod reaches itself by its own address, whatever its policies say', () => {
  const model = modelOf(policyCases.find(({ name }) => name.includes('default-deny-all'))?.policies ?? [])
  assert.equal(passes(model, { source: '10.244.1.11', destination: '10.244.1.11', protocol: 'tcp', port: 80 }), true)
})

test('NPO-02 the labels of the API’s newest pod count, with the address that the kubelet announced', () => {
  assert.deepEqual(podFactsOf(podObject(testPods[0] as never), { announced: ['10.244.1.50'] }).addresses, ['10.244.1.50'])
})

test('NPO-02 policies that select no pod of the node hold no groups', () => {
  const model = new PolicyModel((pod) => pod.nodeName === 'node-2')
  for (const name of ['x', 'y', 'z']) complete(model.updateNamespace(name, namespaceLabels(name)))
  for (const pod of testPods) complete(model.updatePod(pod.key, podFactsOf(podObject(pod))))
  const [one] = policyCases.find(({ name }) => name.includes('NamespaceSelector with MatchExpressions'))?.policies ?? []
  complete(model.updatePolicy('x/p', 'x', complete(compilePolicy(one as NetworkPolicy))))
  assert.deepEqual([[...model.groups()].length, [...model.activePolicies()].length], [0, 0])
  complete(model.updatePod('x/a', podFactsOf({ ...podObject(testPods[0] as never), spec: { nodeName: 'node-2', containers: [] } })))
  complete(model.settle())
  assert.deepEqual([[...model.groups()].length, [...model.activePolicies()].length], [1, 1])
  complete(model.updatePod('x/a', undefined))
  assert.deepEqual([[...model.groups()].length, [...model.activePolicies()].length, [...model.isolations()].length], [0, 0, 0])
})

test('NPO-02 an exception inside another exception is left out', () => {
  const range = (text: string) => rangeOfBlock(parseCidr(text) ?? assert.fail(text))
  const holes = merged(['10.2.0.0/16', '10.1.0.0/16', '10.1.3.0/24', '10.1.0.0/16', '11.0.0.0/8'].map(range))
  assert.deepEqual(holes, ['10.1.0.0/16', '10.2.0.0/16', '11.0.0.0/8'].map(range))
  assert.deepEqual(without(range('10.0.0.0/14'), holes), ['10.0.0.0/16', '10.3.0.0/16'].map(range))
  assert.deepEqual(without(range('10.1.3.0/24'), holes), [])
})

test('NPO-02 a rule of many peers and many ports becomes rules in the kernel as many as its peers and ports together', () => {
  const count = 300
  const numbers = [...Array(count).keys()]
  const from = [
    ...numbers.map((i) => ({ podSelector: { matchLabels: { i: `${i}` } } })),
    ...numbers.map((i) => ({ ipBlock: { cidr: `10.0.${i % 256}.${i}/32` } })),
  ]
  const ports = [...numbers.map((i) => ({ port: `p${i}`, protocol: 'TCP' })), ...numbers.map((i) => ({ port: 2 * i + 1, protocol: 'UDP' }))]
  const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{ from, ports }], egress: [{ to: from, ports }] }
  const model = modelOf([{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'p', namespace: 'x' }, spec }])
  const { chains, sets } = complete(createPolicyRenderer()(model))
  const texts = [...chains.values()].flat()
  // Two families and two directions.
  assert.ok(texts.length < 5 * count && sets.size < 5 * count, `${texts.length} rules, ${sets.size} sets`)
  assert.ok(texts.join().length < 500 * count, `${texts.join().length} characters`)
})

test('NPO-02 the isolation of a pod is found once after changes of many policies, which may be as many as a client creates', () => {
  const model = modelOf([])
  const count = 50
  for (let i = 0; i < count; i++) {
    const policy = { metadata: { name: `p${i}`, namespace: 'x' }, spec: { podSelector: {}, policyTypes: ['Ingress'] } } as NetworkPolicy
    complete(model.updatePolicy(`x/p${i}`, 'x', complete(compilePolicy(policy))))
  }
  const changed: string[] = []
  complete(model.settle((pod) => changed.push(pod)))
  assert.deepEqual(changed, ['x/a', 'x/b'])
  const [isolation] = [...model.isolations()]
  assert.deepEqual([isolation?.policies.length, isolation?.id], [count, count + 1])
})

/** Everything that a model decides. */
function decisions(model: PolicyModel): unknown {
  complete(model.settle())
  const ends = [...testPods, outside]
  const passing = ends.flatMap((from) =>
    ends.flatMap((to) =>
      stacks.flatMap((stack) =>
        [80, 81].flatMap((port) =>
          (['tcp', 'udp'] as const).flatMap((protocol) => {
            const connection = connectionOf({ from, to, port, protocol }, stack)
            return directions
              .filter((direction) => model.allows(direction, connection))
              .map((direction) => `${direction} ${stack} ${from.key} ${to.key} ${port} ${protocol}`)
          }),
        ),
      ),
    ),
  )
  const isolated = directions.flatMap((direction) => [...model.isolated(direction)].map(([address]) => `${direction} ${address}`).sort())
  const groups = [...model.groups()].map((group) => `${group.key} ${[...group.elements('v4').keys()].sort()} ${[...group.elements('v6').keys()].sort()}`).sort()
  const combinations = [...model.isolations()].map(({ direction, policies }) => `${direction} ${policies.map(({ policy }) => policy.key).sort()}`).sort()
  return { passing, isolated, groups, combinations }
}

test('NPO-02 after any changes the model decides as one that is built from the result', () => {
  const random = seededRandom(7)
  const pick = <T>(list: readonly T[]) => list[Math.floor(random.next() * list.length)] as T
  const all = policyCases.flatMap(({ policies }) => policies)
  const isLocal = (pod: { nodeName: string }) => pod.nodeName === 'node-1'
  for (let round = 0; round < 30; round++) {
    const model = new PolicyModel(isLocal)
    const state = { pods: new Map<string, Pod>(), policies: new Map<string, NetworkPolicy>(), namespaces: new Map<string, Record<string, string>>() }
    for (let step = 0; step < 60; step++) {
      const pod = pick(testPods)
      const space = pick(['x', 'y', 'z'])
      const change = pick(['pod', 'pod', 'no pod', 'moved', 'policy', 'policy', 'no policy', 'namespace', 'no namespace'])
      if (change === 'pod' || change === 'moved') {
        const object = podObject(pod, pick([{}, { pod: 'a' }, { pod: 'c' }]))
        const moved = change === 'moved' ? { ...object, status: { podIPs: [{ ip: pick(testPods).addresses.IPv4 }] } } : object
        // Two pods never have one address for long.
        if (change === 'moved') for (const other of [...state.pods.keys()]) if (other !== pod.key) apply(model, state, other, undefined)
        apply(model, state, pod.key, moved)
      } else if (change === 'no pod') apply(model, state, pod.key, undefined)
      else if (change.endsWith('policy')) {
        const policy = change === 'policy' ? pick(all) : undefined
        const key = `${policy?.metadata.namespace ?? 'x'}/${pick(['p', 'q', 'r'])}`
        if (policy) state.policies.set(key, policy)
        else state.policies.delete(key)
        complete(
          model.updatePolicy(
            key,
            key.split('/')[0] ?? '',
            policy && complete(compilePolicy({ ...policy, metadata: { ...policy.metadata, name: key.split('/')[1] } })),
          ),
        )
      } else {
        const labels = change === 'namespace' ? namespaceLabels(pick(['x', 'y', 'z'])) : undefined
        if (labels) state.namespaces.set(space, labels)
        else state.namespaces.delete(space)
        complete(model.updateNamespace(space, labels))
      }
    }
    const fresh = new PolicyModel(isLocal)
    for (const [key, pod] of state.pods) complete(fresh.updatePod(key, podFactsOf(pod)))
    for (const [key, policy] of state.policies)
      complete(
        fresh.updatePolicy(key, key.split('/')[0] ?? '', complete(compilePolicy({ ...policy, metadata: { ...policy.metadata, name: key.split('/')[1] } }))),
      )
    for (const [name, labels] of state.namespaces) complete(fresh.updateNamespace(name, labels))
    assert.deepEqual(decisions(model), decisions(fresh), `round ${round}`)
  }
})

function apply(model: PolicyModel, state: { readonly pods: Map<string, Pod> }, key: string, pod: Pod | undefined): void {
  if (pod) state.pods.set(key, pod)
  else state.pods.delete(key)
  complete(model.updatePod(key, pod && podFactsOf(pod)))
}
