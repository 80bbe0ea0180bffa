import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldOwners } from './fieldOwners.ts'
import { LogLines, logKeyOf, logLine, piecesOf, podsPathOf } from './logs.ts'
import { kindsOf, listPlace, objectPath, objectPlace, parsePlace, placeText } from './places.ts'
import { samplesOf, sumBy, sumOf } from './prometheus.ts'
import { treeOf } from './relations.ts'
import { withoutManagedFields } from './yamlText.ts'

for (const [name, line, want] of [
  ['colours', '\u001b[31mred\u001b[0m text', 'red text'],
  ['a new title of the window', '\u001b]0;title\u0007after', 'after'],
  ['a link', '\u001b]8;;http://evil.example\u001b\\click\u001b]8;;\u001b\\', 'click'],
  ['movements of the cursor', 'a\u001b[2J\u001b[1;1Hb', 'ab'],
  ['a sequence that does not end', 'a\u001b[', 'a\\u001b['],
  ['other control characters', 'a\bb\u0000\u202ec', 'a\\u0008b\\u0000\\u202ec'],
  ['markup', '<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
] as const) {
  test(`ARC-16 a line of a log with ${name} is text`, () => assert.equal(logLine(line), want))
}

test('ARC-16 the lines of several logs keep their order, and an unfinished line waits for its end', () => {
  const log = new LogLines(100)
  const [one, other] = [log.from('a '), log.from('b ')]
  one('1\n2')
  other('x\r\n')
  one('2\n')
  assert.deepEqual(log.lines, ['a 1', 'b x', 'a 22'])
})

test('ARC-16 a long log drops its oldest lines and counts them; a long line is cut', () => {
  const log = new LogLines(100)
  const add = log.from('')
  for (let line = 0; line < 1_000; line++) add(`${line}\n`)
  assert.ok(log.lines.length <= 125)
  assert.equal(log.lines.at(-1), '999')
  assert.equal(log.dropped + log.lines.length, 1_000)
  add(`${'x'.repeat(100_000)}\n`)
  assert.equal(log.lines.at(-1)?.length, 16_384)
})

test('ARC-16 a search marks every match, ignoring case', () => {
  assert.deepEqual(piecesOf('an Ant', 'AN'), [
    { text: 'an', isFound: true },
    { text: ' ', isFound: false },
    { text: 'An', isFound: true },
    { text: 't', isFound: false },
  ])
  assert.deepEqual(piecesOf('line', ''), [{ text: 'line', isFound: false }])
})

test('ARC-16 addresses of the page keep any name, and paths of the API encode it', () => {
  const kind = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles' }
  const name = { namespace: 'a', name: 'x:y?#%/&' }
  assert.deepEqual(parsePlace(objectPlace(kind, name, 'yaml')).path, ['object', 'roles.rbac.authorization.k8s.io', 'a', 'x:y?#%/&', 'yaml'])
  assert.equal(objectPath(kind, name, 'status'), '/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/x%3Ay%3F%23%25%2F%26/status')
  assert.equal(objectPlace({ group: '', resource: 'nodes' }, { namespace: '', name: 'n' }), '#/object/nodes/-/n/summary')
  assert.deepEqual(parsePlace(listPlace({ group: '', resource: 'pods' }, { q: 'a=b c' })), { path: ['list', 'pods'], query: { q: 'a=b c' } })
  assert.deepEqual(parsePlace('#/a/%zz'), { path: ['a', '%zz'], query: {} })
  assert.equal(placeText(['x'], { a: undefined, b: '' }), '#/x')
})

test('ARC-16 kinds come from discovery in their first version, if they can be listed', () => {
  const resource = (name: string, verbs: string[], version: string) => ({
    version,
    resources: [{ resource: name, responseKind: { kind: 'K' }, scope: 'Namespaced', verbs, shortNames: ['k'], subresources: [{ subresource: 'scale' }] }],
  })
  const found = kindsOf([
    { items: [{ metadata: { name: 'g' }, versions: [resource('ks', ['list'], 'v2'), resource('ks', ['list'], 'v1'), resource('js', ['create'], 'v1')] }] },
  ])
  assert.deepEqual(
    found.map(({ resource, version, subresources }) => [resource, version, subresources]),
    [['ks', 'v2', ['scale']]],
  )
})

test('ARC-16 samples of wanted families are read and summed by a label', () => {
  const text = '# HELP a b\na_total{verb="GET",path="x\\"y{}"} 3\na_total{verb="LIST"} 4\na_total_created 9\nb 2\na_total{verb="GET"} 1e1\n'
  const samples = samplesOf(text, new Set(['a_total', 'b']))
  assert.deepEqual(sumBy(samples, 'a_total', 'verb'), [
    ['GET', 13],
    ['LIST', 4],
  ])
  assert.deepEqual([sumOf(samples, 'a_total'), sumOf(samples, 'b'), sumOf(samples, 'c')], [17, 2, 0])
  assert.equal(samples[0]?.labels.path, 'x"y{}')
})

test('ARC-16 managed fields are shown as paths, by manager', () => {
  const fieldsV1 = { 'f:spec': { 'f:containers': { 'k:{"name":"c"}': { '.': {}, 'f:image': {} } }, 'f:finalizers': { 'v:"x"': {} } } }
  assert.deepEqual(fieldOwners([{ manager: 'm', operation: 'Update', subresource: 'status', time: 't', fieldsV1 }]), [
    { manager: 'm', how: 'Update of status', time: 't', paths: ['spec.containers[name=c].image', 'spec.finalizers["x"]'] },
  ])
})

test('ARC-16 the editor’s text has no managed fields', () => {
  const yaml =
    'apiVersion: v1\nmetadata:\n  labels:\n    a: b\n  managedFields:\n  - manager: x\n    fieldsV1:\n      f:a: {}\n  - manager: y\n  name: n\ndata:\n  managedFields: mine\n'
  assert.equal(withoutManagedFields(yaml), 'apiVersion: v1\nmetadata:\n  labels:\n    a: b\n  name: n\ndata:\n  managedFields: mine\n')
  const last = 'metadata:\n  name: n\n  managedFields:\n    - manager: x\n'
  assert.equal(withoutManagedFields(last), 'metadata:\n  name: n\n')
  assert.equal(withoutManagedFields('data:\n  managedFields: mine\nmetadata:\n  name: n\n'), 'data:\n  managedFields: mine\nmetadata:\n  name: n\n')
})

test('ARC-16 the dependants of an object are a tree, also when owners go in a circle', () => {
  const object = (uid: string, ...owners: string[]) => ({
    kind: 'K',
    namespace: '',
    name: uid,
    uid,
    owners: owners.map((owner) => ({ kind: 'K', name: owner, uid: owner })),
  })
  const tree = treeOf(object('a'), [object('b', 'a'), object('c', 'b'), object('d')])
  assert.deepEqual(
    tree.dependants.map(({ object: { uid }, dependants }) => [uid, dependants.map((one) => one.object.uid)]),
    [['b', ['c']]],
  )
  assert.ok(treeOf(object('x', 'y'), [object('x', 'y'), object('y', 'x')]))
})

test('ARC-16 the logs of a workload are those of the pods that its whole selector matches', () => {
  const selector = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] }
  assert.equal(podsPathOf('n', selector), '/api/v1/namespaces/n/pods?labelSelector=app%3Dweb%2Ctier+in+%28a%2Cb%29')
  assert.equal(podsPathOf('n', { matchExpressions: [{ key: 'tier', operator: 'Exists' }] }), '/api/v1/namespaces/n/pods?labelSelector=tier')
  assert.equal(podsPathOf('n', undefined), undefined)
})

test('ARC-16 a log is opened again when its container starts, and when it starts again', () => {
  const keyAt = (state: object, restartCount: number, lastState = {}) =>
    logKeyOf({ metadata: { uid: 'u' }, status: { containerStatuses: [{ name: 'main', restartCount, state, lastState }] } }, 'main')
  const [terminated, running, waiting] = [{ terminated: {} }, { running: {} }, { waiting: {} }]
  assert.deepEqual(
    [keyAt(waiting, 0), keyAt(running, 0), keyAt(terminated, 0), keyAt(waiting, 0, terminated), keyAt(running, 1, terminated)],
    ['u waiting', 'u 0', 'u 0', 'u 0', 'u 1'],
  )
})
