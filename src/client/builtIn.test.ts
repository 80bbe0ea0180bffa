import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import * as builtIn from './builtIn.ts'
import type { Resource } from './client.ts'

test('every resource of the API has a constant that agrees with discovery', () => {
  const declared = Object.values<unknown>(builtIn).filter((value): value is Resource<never> => typeof value === 'object')
  const wanted = builtInResources().map(({ group, version, resource, kind, namespaced }) => ({ group, version, resource, kind, namespaced }))
  const line = (resource: { group: string; version: string; resource: string }) => `${resource.group}/${resource.version}/${resource.resource}`
  const sorted = <T extends { group: string; version: string; resource: string }>(list: readonly T[]) => [...list].sort((a, b) => (line(a) < line(b) ? -1 : 1))
  assert.deepEqual(sorted(declared), sorted(wanted))
})
