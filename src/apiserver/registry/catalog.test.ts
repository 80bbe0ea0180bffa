import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceFacts } from '#api/discovery/resources'
import type { Handler } from '../core/stage.ts'
import { Catalog, type CatalogSource } from './catalog.ts'

const facts = (group: string, version: string, resource: string, kind: string): ResourceFacts => ({
  group,
  version,
  kind,
  resource,
  singular: kind.toLowerCase(),
  namespaced: true,
  verbs: ['get', 'list'],
  shortNames: [],
  categories: [],
  subresources: [],
})

const source = (revision: string, version: string, resource: string, kind: string, more: Partial<CatalogSource> = {}): CatalogSource => ({
  revision,
  groupVersions: [{ group: 'example.com', version, groupPriority: 1000, versionPriority: 100 }],
  entries: [{ facts: facts('example.com', version, resource, kind) }],
  ...more,
})

test('CRD-01 adding and removing a source changes the count of the catalog', () => {
  const catalog = new Catalog()
  catalog.set('a', source('1', 'v1', 'widgets', 'Widget'))
  catalog.set('b', source('1', 'v1', 'gadgets', 'Gadget'))
  assert.equal(catalog.resource('example.com', 'v1', 'widgets')?.facts.kind, 'Widget')
  assert.deepEqual(
    catalog.resources().map((one) => one.resource),
    ['widgets', 'gadgets'],
  )
  assert.equal(catalog.groupVersions().length, 1, 'one group-version of two sources')
  const before = catalog.revisionOf('example.com', 'v1')
  const { changes } = catalog
  catalog.set('a', source('2', 'v1', 'widgets', 'Widget'))
  assert.notEqual(catalog.revisionOf('example.com', 'v1'), before)
  catalog.remove('b')
  assert.equal(catalog.changes, changes + 2)
  catalog.remove('b')
  assert.equal(catalog.changes, changes + 2, 'removing what is not there changes nothing')
  assert.equal(catalog.resource('example.com', 'v1', 'gadgets'), undefined)
})

test('API-14 the catalog serves the first source of a resource, and the second one after the first is removed', () => {
  const catalog = new Catalog()
  catalog.set('a', source('1', 'v1', 'widgets', 'First'))
  catalog.set('b', source('1', 'v1', 'widgets', 'Second'))
  assert.equal(catalog.resource('example.com', 'v1', 'widgets')?.facts.kind, 'First')
  catalog.remove('a')
  assert.equal(catalog.resource('example.com', 'v1', 'widgets')?.facts.kind, 'Second')
})

test('API-28 a group-version of another server is shown as stale while that server does not answer', () => {
  const catalog = new Catalog()
  const handler: Handler = () => ({ type: 'value', status: 200, value: {} })
  assert.equal(catalog.foreign('example.com', 'v1'), undefined)
  const groupVersions = [{ group: 'example.com', version: 'v1', groupPriority: 100, versionPriority: 10, freshness: 'Stale' as const }]
  catalog.set('remote', { revision: '1', groupVersions, entries: [], foreign: handler })
  catalog.set('a', source('1', 'v2', 'widgets', 'Widget'))
  assert.equal(catalog.foreign('example.com', 'v1'), handler)
  assert.equal(catalog.foreign('example.com', 'v2'), undefined)
  assert.deepEqual(
    catalog.groupVersions().map(({ version, freshness }) => [version, freshness]),
    [
      ['v1', 'Stale'],
      ['v2', undefined],
    ],
  )
})
