import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Gateway, Listener, ListenerSet } from './kinds.ts'
import { compileGateway, gatewayOfSet, isAttached } from './listenerSets.ts'
import type { ClusterView } from './view.ts'

const view = {
  problemOfSecret: () => undefined,
  namespaceLabels: (namespace: string) => ({ team: namespace }),
  grantsIn: (namespace: string) => (namespace === 'keys' ? grants : []),
} as unknown as ClusterView
const group = 'gateway.networking.k8s.io'
const grants = [{ spec: { from: [{ group, kind: 'ListenerSet', namespace: 'd' }], to: [{ group: '', kind: 'Secret' }] } }]

type From = NonNullable<NonNullable<Gateway['spec']['allowedListeners']>['namespaces']>

const gatewayOf = (namespaces: From | undefined, listeners: Listener[] = [http('own', 'own.test')], addresses: object[] = []) =>
  ({
    metadata: { namespace: 'd', name: 'g' },
    spec: { listeners, addresses, ...(namespaces ? { allowedListeners: { namespaces } } : {}) },
  }) as unknown as Gateway

function setOf(name: string, listeners: Listener[], { namespace = 'd', creationTimestamp = '2026-01-01T00:00:00Z' } = {}): ListenerSet {
  const parentRef = { name: 'g', namespace: 'd' }
  return { metadata: { namespace, name, creationTimestamp }, spec: { parentRef, listeners } } as unknown as ListenerSet
}

const http = (name: string, hostname: string, port = 80): Listener => ({ name, hostname, port, protocol: 'HTTP' })
const https = (name: string, hostname: string, namespace: string): Listener => ({
  ...http(name, hostname, 443),
  protocol: 'HTTPS',
  tls: { certificateRefs: [{ name: 'pair', namespace }] },
})

const verdictsOn = (gateway: Gateway, ...sets: ListenerSet[]) =>
  Object.fromEntries(
    compileGateway(gateway, sets, view).sets.map(({ key, accepted, programmed }) => [
      key,
      `${accepted.status} ${accepted.reason} ${programmed.status} ${programmed.reason}`,
    ]),
  )

const allowing: [from: From | undefined, wanted: string[]][] = [
  [undefined, []],
  [{}, []],
  [{ from: 'None' }, []],
  [{ from: 'Same' }, ['d/a']],
  [{ from: 'All' }, ['d/a', 'e/a']],
  [{ from: 'Selector', selector: { matchLabels: { team: 'e' } } }, ['e/a']],
  [{ from: 'Selector' }, []],
]
for (const [from, wanted] of allowing) {
  test(`ING-05 a Gateway with allowedListeners ${JSON.stringify(from)} takes the ListenerSets ${wanted.join(' and ') || 'of no namespace'}`, () => {
    const sets = ['d', 'e'].map((namespace) => setOf('a', [http('l', `${namespace}.test`)], { namespace }))
    const compiled = compileGateway(gatewayOf(from), sets, view)
    assert.deepEqual(
      compiled.sets.filter(isAttached).map(({ key }) => key),
      wanted,
    )
    assert.deepEqual(
      compiled.listeners.map(({ id }) => id),
      ['own', ...wanted.map((key) => `${key}/l`)],
    )
    for (const { accepted, programmed } of compiled.sets.filter((one) => !isAttached(one)))
      assert.deepEqual([accepted.reason, programmed.reason], ['NotAllowed', 'NotAllowed'])
  })
}

test('ING-05 of listeners with one place the Gateway’s own has it, then that of the oldest ListenerSet; a set without a served listener is refused', () => {
  const older = setOf('z', [http('same', 'own.test'), http('first', 'a.test'), http('other', 'b.test', 81)], { creationTimestamp: '2025-01-01T00:00:00Z' })
  const younger = setOf('a', [http('second', 'A.test'), { ...http('protocol', 'c.test', 81), protocol: 'HTTPS' }, http('good', 'd.test')])
  const none = setOf('b', [http('second', 'a.test')])
  const { listeners, sets } = compileGateway(gatewayOf({ from: 'All' }), [younger, none, older], view)
  const reasons = listeners.map(({ id, isServed, outcomes: [accepted, programmed, , conflicted] }) => [
    id,
    isServed,
    accepted?.reason,
    programmed?.reason,
    conflicted?.status,
  ])
  assert.deepEqual(reasons, [
    ['own', true, 'Accepted', 'Programmed', 'False'],
    ['d/z/same', false, 'HostnameConflict', 'HostnameConflict', 'True'],
    ['d/z/first', true, 'Accepted', 'Programmed', 'False'],
    ['d/z/other', true, 'Accepted', 'Programmed', 'False'],
    ['d/a/second', false, 'HostnameConflict', 'HostnameConflict', 'True'],
    ['d/a/protocol', false, 'ProtocolConflict', 'ProtocolConflict', 'True'],
    ['d/a/good', true, 'Accepted', 'Programmed', 'False'],
    ['d/b/second', false, 'HostnameConflict', 'HostnameConflict', 'True'],
  ])
  assert.deepEqual(
    sets.map(({ key, accepted, programmed }) => [key, `${accepted.status} ${accepted.reason}`, `${programmed.status} ${programmed.reason}`]),
    [
      ['d/z', 'True ListenersNotValid', 'True Programmed'],
      ['d/a', 'True ListenersNotValid', 'True Programmed'],
      ['d/b', 'False ListenersNotValid', 'False ListenersNotValid'],
    ],
  )
})

test('ING-05 a ListenerSet names certificates by its own namespace and by ReferenceGrants for ListenerSets', () => {
  const granted = setOf('granted', [https('l', 'a.test', 'keys')])
  const other = setOf('other', [https('l', 'b.test', 'keys')], { namespace: 'e' })
  const own = setOf('own', [https('l', 'c.test', 'e')], { namespace: 'e' })
  assert.deepEqual(verdictsOn(gatewayOf({ from: 'All' }), granted, other, own), {
    'd/granted': 'True Accepted True Programmed',
    'e/other': 'False ListenersNotValid False ListenersNotValid',
    'e/own': 'True Accepted True Programmed',
  })
})

test('ING-05 a ListenerSet of a Gateway that is not accepted is not accepted', () => {
  const gateway = gatewayOf({ from: 'All' }, [http('own', 'own.test')], [{ value: '192.0.2.1' }])
  assert.deepEqual(verdictsOn(gateway, setOf('a', [http('l', 'a.test')])), { 'd/a': 'False ParentNotAccepted False ParentNotAccepted' })
})

test('ING-05 a Gateway has at most 1,000 listeners with those of its ListenerSets', () => {
  const sets = Array.from({ length: 20 }, (_, i) =>
    setOf(
      `s${i}`,
      Array.from({ length: 64 }, (_, j) => http(`l${j}`, `h${i}-${j}.test`)),
    ),
  )
  const { listeners } = compileGateway(gatewayOf({ from: 'All' }), sets, view)
  assert.equal(listeners.filter(({ isServed }) => isServed).length, 1000)
  assert.equal(listeners.at(-1)?.outcomes[0]?.reason, 'TooManyListeners')
})

test('ING-05 a ListenerSet belongs to the Gateway that it names, by default of its own namespace', () => {
  const set = (parentRef: object) => ({ ...setOf('a', []), spec: { parentRef } }) as ListenerSet
  assert.deepEqual(
    [{ name: 'g' }, { name: 'g', namespace: 'e', kind: 'Gateway', group }, { name: 'g', kind: 'Service', group: '' }].map((ref) => gatewayOfSet(set(ref))),
    ['d/g', 'e/g', undefined],
  )
})

test('ING-05 a ListenerSet that cannot be read is refused, and leaves the Gateway and its other sets served', () => {
  const broken = setOf('a', [null as unknown as Listener])
  const compiled = compileGateway(gatewayOf({ from: 'All' }), [broken, setOf('b', [http('l', 'b.test')])], view)
  assert.deepEqual(
    compiled.sets.map(({ key, accepted }) => [key, accepted.reason]),
    [
      ['d/a', 'Invalid'],
      ['d/b', 'Accepted'],
    ],
  )
  assert.equal(compiled.listeners.length, 2)
})

test('ING-05 a listener of an unsupported protocol is in conflict with a served one of its port, and keeps no place from a younger one', () => {
  const tcp = (name: string, port: number): Listener => ({ name, port, protocol: 'TCP' })
  const older = setOf('a', [tcp('conflict', 80), tcp('alone', 81)])
  const { listeners } = compileGateway(gatewayOf({ from: 'All' }), [older, setOf('b', [http('served', 'b.test', 81)])], view)
  assert.deepEqual(
    listeners.map(({ id, outcomes: [accepted] }) => [id, accepted?.reason]),
    [
      ['own', 'Accepted'],
      ['d/a/conflict', 'ProtocolConflict'],
      ['d/a/alone', 'UnsupportedProtocol'],
      ['d/b/served', 'Accepted'],
    ],
  )
})
