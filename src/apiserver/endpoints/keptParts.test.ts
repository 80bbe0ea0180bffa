/** The parts of a written object that are set aside unparsed, and how they are put back. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { deepFreeze } from '#base/frozen'
import { KeptParts, keptByPatch } from './keptParts.ts'
import type { Scope } from './scope.ts'

const cached = deepFreeze({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', labels: { app: 'web' }, managedFields: [{ manager: 'test' }] },
  spec: { containers: [{ name: 'c' }] },
  status: { phase: 'Pending' },
}) as unknown as Record<string, unknown> & { metadata: Record<string, unknown> }

const scopeOf = (subresource: string, custom?: object) => ({ info: { subresource }, served: { custom, stored: { strategy: {} } } }) as unknown as Scope
const byPatch = (patch: unknown, subresource = 'status', custom?: object) =>
  keptByPatch(scopeOf(subresource, custom), cached as unknown as Parameters<typeof keptByPatch>[1], patch)

test('the rest has neither the kept members nor the managers, and the joined object has them again, in the old order', () => {
  const kept = new KeptParts(cached, new Set(['spec']), true)
  const { managedFields: _managers, ...metadata } = cached.metadata
  assert.deepEqual(kept.rest, { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: 'Pending' } })
  const decoded = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, status: { phase: 'Running' }, spec: { filled: true } }
  const joined = kept.joined(decoded as unknown as KubeObject) as unknown as typeof cached
  assert.deepEqual(Object.keys(joined), ['apiVersion', 'kind', 'metadata', 'spec', 'status'])
  assert.equal(joined.spec, cached.spec)
  assert.equal(joined.metadata.managedFields, cached.metadata.managedFields)
  assert.deepEqual(joined.status, { phase: 'Running' })
})

test('members that decoding adds follow the rest, and members that it drops are not put back', () => {
  const kept = new KeptParts({ metadata: {}, spec: {}, gone: 1 }, new Set(['spec']), true)
  const joined = kept.joined({ metadata: {}, added: 2 } as unknown as KubeObject) as unknown as Record<string, unknown>
  assert.deepEqual(Object.entries(joined), [
    ['metadata', {}],
    ['spec', {}],
    ['added', 2],
  ])
})

test('a field named __proto__ is a field like any other', () => {
  const whole = JSON.parse('{"metadata":{},"spec":{"a":1},"__proto__":{"b":2}}') as Record<string, unknown>
  const kept = new KeptParts(whole, new Set(['spec']), false)
  assert.equal(Object.getPrototypeOf(kept.rest), Object.prototype)
  assert.deepEqual(Object.keys(kept.rest), ['metadata', '__proto__'])
})

const patches: readonly { name: string; patch: unknown; subresource?: string; custom?: object; spec: boolean; managers: boolean }[] = [
  { name: 'a status alone', patch: { status: {} }, spec: true, managers: true },
  { name: 'a status and labels', patch: { metadata: { labels: {} }, status: {} }, spec: true, managers: true },
  { name: 'a status and a spec', patch: { spec: {}, status: {} }, spec: false, managers: true },
  { name: 'managers', patch: { metadata: { managedFields: [{}] } }, spec: true, managers: false },
  { name: 'a directive for the metadata', patch: { metadata: { $patch: 'replace' } }, spec: true, managers: false },
  { name: 'no metadata at all', patch: { metadata: null }, spec: true, managers: false },
  { name: 'the object itself', patch: { spec: {} }, subresource: '', spec: false, managers: true },
  { name: 'a status of a custom resource', patch: { status: {} }, custom: {}, spec: false, managers: true },
]
for (const { name, patch, subresource, custom, spec, managers } of patches) {
  test(`a patch of ${name} keeps the spec: ${spec}, the managers: ${managers}`, () => {
    const kept = byPatch(patch, subresource, custom)
    assert.equal(kept !== undefined && !Object.hasOwn(kept.rest, 'spec'), spec)
    assert.equal(kept !== undefined && !Object.hasOwn(kept.rest.metadata as object, 'managedFields'), managers)
  })
}

for (const patch of [{ $patch: 'replace' }, { $retainKeys: ['status'] }, [], null, 'text']) {
  test(`the patch ${JSON.stringify(patch)} keeps no part of the old object`, () => assert.equal(byPatch(patch), undefined))
}

test('only managedFields are set aside if defaults depend on the spec', () => {
  const scope = { info: { subresource: 'status' }, served: { stored: { strategy: { defaultsReadSpec: true } } } } as unknown as Scope
  const kept = keptByPatch(scope, cached as unknown as Parameters<typeof keptByPatch>[1], { status: {} })
  assert.equal(kept?.rest.spec, cached.spec)
})

for (const [name, patch, isDecoded] of [
  ['of the status', { status: {} }, true],
  ['of labels', { metadata: { labels: {} } }, false],
  ['that removes the metadata', { metadata: null }, false],
] as const)
  test(`a patch ${name} decodes the metadata again: ${!isDecoded}`, () => {
    assert.deepEqual([...(byPatch(patch)?.decoded ?? [])], isDecoded ? ['metadata'] : [])
    assert.equal(byPatch(patch, 'status', {})?.decoded, undefined)
  })
