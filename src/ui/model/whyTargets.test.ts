/** Which objects have an explanation, and where the next commands of an explanation lead. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skiffWhy } from '#why/answer'
import type { Kind } from './places.ts'
import { isExplained, targetOf } from './whyTargets.ts'

const kind = (group: string, resource: string, name: string, namespaced: boolean, shortNames: readonly string[] = []): Kind => ({
  ...{ group, version: 'v1', resource, kind: name, namespaced, shortNames },
  ...{ verbs: ['list'], subresources: [] },
})
const kinds = [
  kind('', 'pods', 'Pod', true, ['po']),
  kind('', 'nodes', 'Node', false, ['no']),
  kind('', 'namespaces', 'Namespace', false, ['ns']),
  kind('gateway.networking.k8s.io', 'gateways', 'Gateway', true, ['gtw']),
]

test('ARC-16 the command that explains another object leads to that object, by its plural, kind or short name', () => {
  const texts = [skiffWhy('pod', 'web-1', 'shop'), skiffWhy('pods', 'web-1'), skiffWhy('node', 'n1'), skiffWhy('ns', 'team'), skiffWhy('gateway', 'front', 'a')]
  const found = texts.map((text) => targetOf(text, kinds)).map((target) => [target?.kind.resource, target?.object.namespace, target?.object.name])
  assert.deepEqual(found, [
    ['pods', 'shop', 'web-1'],
    ['pods', 'default', 'web-1'],
    ['nodes', '', 'n1'],
    ['namespaces', '', 'team'],
    ['gateways', 'a', 'front'],
  ])
})

test('ARC-16 a command that explains no object leads nowhere', () => {
  for (const text of ['kubectl get pods -n shop', 'skiff why unicorn/a', 'skiff why pod/a; rm -rf /', "skiff why 'pod/a b'", 'skiff status'])
    assert.equal(targetOf(text, kinds), undefined, text)
})

test('ARC-16 objects of other kinds are explained when they have conditions or are being deleted', () => {
  const boats = { group: 'example.com', resource: 'boats' }
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  assert.equal(isExplained({ group: 'apps', resource: 'statefulsets' }, undefined), true)
  assert.equal(isExplained({ group: 'example.com', resource: 'statefulsets' }, { metadata: {} }), false)
  assert.equal(isExplained(boats, undefined), false)
  assert.equal(isExplained(boats, { metadata: {}, status: { conditions: [] } }), false)
  assert.equal(isExplained(boats, { metadata: {}, status: { conditions: [{ type: 'Ready' }] } }), true)
  assert.equal(isExplained({ group: '', resource: 'configmaps' }, { metadata }), true)
})
