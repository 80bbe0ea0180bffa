/** Upstream's table of what is done with an APIService, cell by cell. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { CatalogSource } from '../registry/catalog.ts'
import { desiredOf, planOf } from './autoRegister.ts'

const managed = (label: string | undefined, groupPriorityMinimum = 1) =>
  ({
    metadata: { name: 'v1.g', labels: label === undefined ? {} : { 'kube-aggregator.kubernetes.io/automanaged': label } },
    spec: { group: 'g', version: 'v1', groupPriorityMinimum, versionPriority: 1 },
  }) as unknown as APIService

const none = undefined
const onStart = managed('onstart')
const always = managed('true')
const changed = (label: string | undefined) => managed(label, 2)
const first = { synced: false, atStart: true }
const again = { synced: true, atStart: true }
const late = { synced: false, atStart: false }

const cases: readonly (readonly [name: string, current: APIService | undefined, desired: APIService | undefined, state: typeof first, want: string])[] = [
  ['absent and not wanted', none, none, first, 'nothing'],
  ['absent, wanted on start', none, onStart, first, 'create'],
  ['absent, wanted on start, done before', none, onStart, again, 'nothing'],
  ['absent, wanted always, done before', none, always, again, 'create'],
  ['an APIService that a user made', changed(undefined), always, first, 'nothing'],
  ['made after the start for the start', changed('onstart'), always, late, 'nothing'],
  ['left from an earlier start', onStart, none, first, 'delete'],
  ['left from an earlier start, looked at before', onStart, none, again, 'nothing'],
  ['differs, wanted on start', changed('onstart'), onStart, first, 'update'],
  ['differs, wanted on start, done before', changed('onstart'), onStart, again, 'nothing'],
  ['ours and not wanted any more', always, none, again, 'delete'],
  ['differs, wanted always, done before', changed('true'), always, again, 'update'],
  ['as it should be', always, always, again, 'nothing'],
]
for (const [name, current, desired, state, want] of cases) {
  test(`API-28 registering: ${name}: ${want}`, () => assert.equal(planOf(current, desired, state).type, want))
}

const groupVersion = { group: 'g', version: 'v1', groupPriority: 1, versionPriority: 1 }
const source = (more: Partial<CatalogSource>): CatalogSource => ({ revision: '', groupVersions: [groupVersion], entries: [], ...more })
const custom = source({})
const computed = source({ computed: true })
const foreign = source({ foreign: () => Promise.reject(new Error('not called')) })
for (const [what, sources, names] of [
  ['custom resources', [custom], ['v1.g']],
  ['a component of this process', [computed], []],
  ['another server', [foreign], []],
  ['a component, then custom resources', [computed, custom], ['v1.g']],
  ['custom resources, then a component', [custom, computed], ['v1.g']],
] as const) {
  test(`API-28 registering: a group-version has an APIService of the server's own for custom resources alone, served by ${what}`, () => {
    assert.deepEqual([...desiredOf({ sources: () => sources }).keys()], names)
  })
}
