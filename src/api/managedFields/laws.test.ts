/** Laws that ownership must keep for any objects and any order of writers, checked on generated histories. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deepFreeze } from '#base/frozen'
import type { KubeObject, Unstructured } from '../machinery/meta.ts'
import { schemaFor } from '../schema/builtIn.ts'
import { apply } from './apply.ts'
import { difference, equals, type FieldSet, intersection, isEmpty, pathsOf, union } from './fieldSet.ts'
import { trackUpdate } from './trackUpdate.ts'
import { fieldSetOf } from './typed.ts'

const runs = { numRuns: 150, seed: 7 }
const schema = schemaFor('', 'v1', 'Pod')

const containerArb = fc.record(
  {
    name: fc.constantFrom('a', 'b', 'c'),
    image: fc.constantFrom('1', '2'),
    env: fc.uniqueArray(fc.record({ name: fc.constantFrom('X', 'Y'), value: fc.constantFrom('1', '2') }), { selector: (e) => e.name }),
  },
  { requiredKeys: ['name'] },
)
const podArb = fc
  .record(
    {
      labels: fc.dictionary(fc.constantFrom('l', 'm'), fc.constantFrom('1', '2')),
      containers: fc.uniqueArray(containerArb, { selector: (c) => c.name }),
      nodeName: fc.constantFrom('n1', 'n2'),
    },
    { requiredKeys: [] },
  )
  .map(
    ({ labels, ...spec }) =>
      ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', ...(labels ? { labels } : {}) },
        ...(Object.keys(spec).length > 0 ? { spec } : {}),
      }) as unknown as Unstructured,
  )
const setArb: fc.Arbitrary<FieldSet> = podArb.map((pod) => fieldSetOf(pod, schema))

test('API-11 difference and intersection split a set of fields, and union joins it', () => {
  fc.assert(
    fc.property(setArb, setArb, (a, b) => {
      const [only, both] = [difference(a, b), intersection(a, b)]
      assert.ok(isEmpty(intersection(only, b)))
      assert.deepEqual(pathsOf(union(only, both)), pathsOf(a))
      assert.deepEqual([...new Set([...pathsOf(a), ...pathsOf(b)])].sort(), pathsOf(union(a, b)).sort())
    }),
    runs,
  )
})

const common = { schema, apiVersion: 'v1', nowMs: 0 }

test('API-11 applying the same configuration again changes nothing', () => {
  fc.assert(
    fc.property(podArb, podArb, (live, config) => {
      const start = structuredClone(live)
      trackUpdate({ ...common, old: undefined, updated: start, manager: 'u' })
      const once = deepFreeze(apply({ ...common, live: deepFreeze(start), applied: deepFreeze(config), manager: 'm', force: true }))
      const twice = apply({ ...common, live: once, applied: config, manager: 'm', force: false, nowMs: 99_000 })
      assert.deepEqual(twice, once)
    }),
    runs,
  )
})

test('API-11 a manager owns exactly the fields that it applied, and no other manager owns a field with another value', () => {
  fc.assert(
    fc.property(podArb, podArb, podArb, (first, second, third) => {
      let live: Unstructured | undefined
      for (const [manager, config] of [
        ['one', first],
        ['two', second],
        ['one', third],
      ] as const) {
        live = deepFreeze(apply({ ...common, live, applied: deepFreeze(config), manager, force: true })) as Unstructured
        const own = live.metadata.managedFields?.find((entry) => entry.manager === manager)?.fieldsV1 ?? {}
        const { 'f:apiVersion': _a, 'f:kind': _k, 'f:metadata': metadata, ...rest } = fieldSetOf(config, schema)
        const { 'f:name': _n, ...kept } = metadata ?? {}
        assert.ok(equals(own as FieldSet, isEmpty(kept) ? rest : { ...rest, 'f:metadata': kept }))
      }
    }),
    runs,
  )
})

test('API-11 a field is removed when its only owner stops applying it, and stays if another manager owns it', () => {
  fc.assert(
    fc.property(podArb, podArb, (mine, theirs) => {
      const empty = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } } as unknown as Unstructured
      const one = deepFreeze(apply({ ...common, live: undefined, applied: mine, manager: 'one', force: true }))
      const two = deepFreeze(apply({ ...common, live: one, applied: theirs, manager: 'two', force: true }))
      const left = apply({ ...common, live: two, applied: empty, manager: 'one', force: true })
      const want = new Set(pathsOf(fieldSetOf(theirs, schema)))
      for (const path of pathsOf(fieldSetOf(left, schema))) {
        // Empty parents may stay behind; every leaf must be theirs.
        if (!path.startsWith('.metadata.managedFields') && !want.has(path))
          assert.ok([...want].every((other) => !path.startsWith(`${other}.`)) && isEmptyAt(left, path), path)
      }
    }),
    runs,
  )
})

/** True for paths of emptied maps, which own nothing. */
function isEmptyAt(object: KubeObject, path: string): boolean {
  const value = path
    .split('.')
    .slice(1)
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], object)
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

test('API-11 after every update the claims cover the changed fields', () => {
  fc.assert(
    fc.property(podArb, podArb, (before, after) => {
      const old = structuredClone(before)
      trackUpdate({ ...common, old: undefined, updated: old, manager: 'one' })
      const updated = structuredClone(after)
      trackUpdate({ ...common, old: deepFreeze(old), updated, manager: 'two', nowMs: 5_000 })
      const owned = (updated.metadata.managedFields ?? []).reduce<FieldSet>((set, entry) => union(set, entry.fieldsV1 as FieldSet), {})
      const there = pathsOf(fieldSetOf(updated, schema)).filter((path) => !/^\.(apiVersion|kind|metadata\.(name|managedFields))/.test(path))
      if (old.metadata.managedFields !== undefined)
        assert.deepEqual(
          there.filter((path) => !pathsOf(owned).includes(path)).filter((path) => !isEmptyAt(updated, path)),
          [],
        )
    }),
    runs,
  )
})

const repeatingArb = fc
  .array(containerArb, { maxLength: 6 })
  .map((containers) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers } }) as unknown as Unstructured)
const namesOf = (pod: KubeObject) => (pod as unknown as { spec?: { containers?: { name: string }[] } }).spec?.containers?.map(({ name }) => name) ?? []

test('API-11 repeated list items stay until one of them is applied, which replaces them all', () => {
  fc.assert(
    fc.property(repeatingArb, podArb, (live, config) => {
      const start = structuredClone(live)
      trackUpdate({ ...common, old: undefined, updated: start, manager: 'u' })
      const again = structuredClone(start)
      trackUpdate({ ...common, old: deepFreeze(start), updated: again, manager: 'v', nowMs: 5_000 })
      assert.deepEqual(again, start)
      const left = namesOf(apply({ ...common, live: start, applied: deepFreeze(config), manager: 'm', force: true }))
      const taken = new Set(namesOf(config))
      for (const name of new Set([...namesOf(live), ...taken])) {
        const want = taken.has(name) ? 1 : namesOf(live).filter((one) => one === name).length
        assert.equal(left.filter((one) => one === name).length, want, name)
      }
    }),
    runs,
  )
})
