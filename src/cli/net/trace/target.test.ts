import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '../../exitCodes.ts'
import { candidateNames, parseTarget, serviceOfName } from './target.ts'

const targets: readonly (readonly [text: string, want: object])[] = [
  ['web', { host: 'web', isTls: false }],
  ['web.shop:8080', { host: 'web.shop', port: '8080', isTls: false }],
  ['web:https', { host: 'web', port: 'https', isTls: false }],
  ['svc/web', { service: { namespace: 'd', name: 'web' }, isTls: false }],
  ['shop/web', { service: { namespace: 'shop', name: 'web' }, isTls: false }],
  ['pod/shop/web-0', { pod: { namespace: 'shop', name: 'web-0' }, isTls: false }],
  ['https://web.shop/x?y', { host: 'web.shop', port: '443', isTls: true }],
  ['http://10.0.0.1:81/', { address: '10.0.0.1', port: '81', isTls: false }],
  ['10.0.0.1:443', { address: '10.0.0.1', port: '443', isTls: true }],
  ['[fd00::1]:80', { address: 'fd00::1', port: '80', isTls: false }],
]
for (const [text, want] of targets) {
  test(`SVC-13 skiff net trace takes the target ${text}`, () => assert.deepEqual(parseTarget(text, 'd', undefined), { text, ...want }))
}

test('SVC-13 skiff net trace refuses a target that is none', () => {
  for (const text of ['ftp://web', 'a b', '10.0.0.1', 'a/b/c/d', 'https://', 'web?x=1'])
    assert.throws(() => parseTarget(text, 'd', undefined), CommandError, text)
})

test('SVC-12 skiff net trace asks for names in the order of the pod’s resolver', () => {
  const searches = ['d.svc.cluster.local', 'svc.cluster.local', 'cluster.local']
  assert.deepEqual(candidateNames('web', searches, ['ndots:5']), ['web.d.svc.cluster.local', 'web.svc.cluster.local', 'web.cluster.local', 'web'])
  assert.deepEqual(candidateNames('a.example.org', ['lan'], []), ['a.example.org', 'a.example.org.lan'])
  assert.deepEqual(candidateNames('a.example.org.', searches, ['ndots:5']), ['a.example.org'])
  const many = Array.from({ length: 32 }, (_, i) => `s${i}`)
  assert.deepEqual(candidateNames('web', many, ['ndots:5']).at(-1), 'web')
  assert.equal(candidateNames('web', many, ['ndots:5']).length, 8)
})

test('SVC-12 skiff net trace knows the Service that a name means', () => {
  const of = (host: string) => serviceOfName(host, 'd', 'cluster.local')
  assert.deepEqual(of('web'), { name: 'web', namespace: 'd' })
  assert.deepEqual(of('web.shop'), { name: 'web', namespace: 'shop' })
  assert.deepEqual(of('web.shop.svc.cluster.local.'), { name: 'web', namespace: 'shop' })
  assert.equal(of('www.example.org'), undefined)
  assert.equal(of('a.web.shop.svc'), undefined)
})
