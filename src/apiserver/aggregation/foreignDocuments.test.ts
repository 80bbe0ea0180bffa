import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOfDiscovery, factsOfResourceList, openApiPart } from './foreignDocuments.ts'

const wanted = {
  ...{ group: 'g', version: 'v1', kind: 'Thing', resource: 'things', singular: 'thing', namespaced: true },
  ...{ verbs: ['get', 'list'], shortNames: ['th'], categories: ['all'] },
  subresources: [{ name: 'scale', kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, verbs: ['get'], connect: false, parameters: [] }],
}

test('API-28 both forms of discovery give the same facts', () => {
  const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' }
  const thing = { group: 'g', version: 'v1', kind: 'Thing' }
  const aggregated = {
    items: [
      {
        metadata: { name: 'g' },
        versions: [
          { version: 'v2' },
          {
            version: 'v1',
            resources: [
              {
                ...{ resource: 'things', responseKind: thing, scope: 'Namespaced', singularResource: 'thing' },
                ...{ verbs: ['get', 'list'], shortNames: ['th'], categories: ['all'] },
                subresources: [{ subresource: 'scale', responseKind: scale, verbs: ['get'] }],
              },
            ],
          },
        ],
      },
    ],
  }
  const plain = {
    resources: [
      { name: 'things', singularName: 'thing', namespaced: true, kind: 'Thing', verbs: ['get', 'list'], shortNames: ['th'], categories: ['all'] },
      { name: 'things/scale', ...scale, namespaced: true, verbs: ['get'] },
    ],
  }
  assert.deepEqual(factsOfDiscovery(aggregated, 'g', 'v1'), [wanted])
  assert.deepEqual(factsOfResourceList(plain, 'g', 'v1'), [wanted])
})

test('API-28 what a server leaves out is empty, not a failure', () => {
  assert.deepEqual(factsOfDiscovery({}, 'g', 'v1'), [])
  assert.deepEqual(factsOfDiscovery({ items: [{ metadata: { name: 'g' }, versions: [{ version: 'v1' }] }] }, 'g', 'v1'), [])
  assert.deepEqual(factsOfResourceList({}, 'g', 'v1'), [])
  assert.deepEqual(openApiPart({}, 'g', 'v1'), { paths: {}, definitions: {} })
})

test('API-28 of OpenAPI only the paths of the group-version are taken, with all definitions that they lead to', () => {
  const reference = (name: string) => ({ schema: { $ref: `#/definitions/${name}` } })
  const document = {
    paths: { '/apis/g/v1/things': { get: reference('Thing') }, '/apis/g/v2/things': { get: reference('Other') }, '/api/v1/pods': {} },
    definitions: {
      Thing: { properties: { spec: { $ref: '#/definitions/Spec' } } },
      Spec: { properties: { self: { $ref: '#/definitions/Thing' } } },
      Other: {},
    },
  }
  const { paths, definitions } = openApiPart(document, 'g', 'v1') as { paths: object; definitions: object }
  assert.deepEqual([Object.keys(paths), Object.keys(definitions).sort()], [['/apis/g/v1/things'], ['Spec', 'Thing']])
})
