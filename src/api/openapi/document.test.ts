import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResources } from '../discovery/resources.ts'
import type { Schema } from '../schema/schema.ts'
import { openApiV2, openApiV3, openApiV3Index, openApiV3Keys } from './document.ts'
import { pathsOf } from './paths.ts'

type Json = Record<string, unknown>

const input = {
  resources: builtInResources(),
  describe: (definition: string, field?: string) =>
    definition.endsWith('core.v1.Pod') ? (field === undefined ? 'a pod' : field === 'spec' ? 'what it should be' : undefined) : undefined,
  serverVersion: 'v1.36.0',
}

function dig(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Json | undefined)?.[name], value)
}

test('API-15 the default API has 383 paths and 789 operations', () => {
  const paths = [...pathsOf(builtInResources())]
  assert.equal(paths.length, 383)
  assert.equal(
    paths.reduce((sum, item) => sum + item.operations.length, 0),
    789,
  )
  assert.equal(new Set(paths.flatMap((item) => item.operations.map(({ id }) => id))).size, 789)
})

const v2 = openApiV2(input)

test('API-15 v2 describes a kind with its texts, markers and references', () => {
  const pod = dig(v2, 'definitions', 'io.k8s.api.core.v1.Pod')
  assert.deepEqual(pod, {
    description: 'a pod',
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
      spec: { description: 'what it should be', $ref: '#/definitions/io.k8s.api.core.v1.PodSpec' },
      status: { $ref: '#/definitions/io.k8s.api.core.v1.PodStatus' },
    },
    'x-kubernetes-group-version-kind': [{ group: '', kind: 'Pod', version: 'v1' }],
  })
  assert.deepEqual(dig(v2, 'definitions', 'io.k8s.api.core.v1.PodSpec', 'properties', 'containers'), {
    type: 'array',
    items: { $ref: '#/definitions/io.k8s.api.core.v1.Container' },
    'x-kubernetes-list-map-keys': ['name'],
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-patch-merge-key': 'name',
    'x-kubernetes-patch-strategy': 'merge',
  })
})

function references(value: unknown, found: Set<string>): Set<string> {
  if (Array.isArray(value)) for (const item of value) references(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      if (key === '$ref' && typeof member === 'string') found.add(member)
      else references(member, found)
    }
  }
  return found
}

test('API-15 every reference of v2 leads somewhere', () => {
  const broken = [...references(v2, new Set())].filter((reference) => dig(v2, ...reference.replace('#/', '').split('/')) === undefined)
  assert.deepEqual(broken, [])
})

test('API-15 v3: every key has a document whose references hold', () => {
  const keys = openApiV3Keys(input.resources)
  assert.equal(keys.length, 47)
  for (const key of keys) {
    const document = openApiV3(key, input)
    assert.ok(document, key)
    const broken = [...references(document, new Set())].filter((reference) => dig(document, ...reference.replace('#/', '').split('/')) === undefined)
    assert.deepEqual(broken, [], key)
  }
  assert.equal(openApiV3('apis/nothing/v1', input), undefined)
})

test('API-15 v3 says what a patch takes and which parameters it knows', () => {
  const path = dig(openApiV3('apis/apps/v1', input), 'paths', '/apis/apps/v1/namespaces/{namespace}/deployments/{name}')
  const patch = dig(path, 'patch')
  assert.deepEqual(dig(patch, 'x-kubernetes-group-version-kind'), { group: 'apps', kind: 'Deployment', version: 'v1' })
  assert.deepEqual(Object.keys(dig(patch, 'requestBody', 'content') as Json), [
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/apply-patch+yaml',
    'application/apply-patch+cbor',
  ])
  assert.deepEqual(
    (dig(patch, 'parameters') as { name: string }[]).map(({ name }) => name),
    ['dryRun', 'fieldManager', 'fieldValidation', 'force'],
  )
})

test('CRD-05 a kind that is not built in is described from its own schema', () => {
  const schema: Schema = {
    type: 'object',
    definition: 'com.example.v1.Foo',
    fields: new Map([['spec', { name: 'spec', required: true, schema: { type: 'map', element: { type: 'integer', format: 'int64' } } }]]),
  }
  const [pods] = builtInResources().filter((facts) => facts.resource === 'configmaps')
  assert.ok(pods)
  const resources = [{ ...pods, group: 'example.com', version: 'v1', kind: 'Foo', resource: 'foos', subresources: [] }]
  const kind = { group: 'example.com', version: 'v1', kind: 'Foo' }
  const document = openApiV3('apis/example.com/v1', { ...input, resources, extras: [{ name: 'com.example.v1.Foo', schema, kind }] })
  assert.deepEqual(dig(document, 'components', 'schemas', 'com.example.v1.Foo'), {
    type: 'object',
    required: ['spec'],
    properties: { spec: { type: 'object', additionalProperties: { type: 'integer', format: 'int64' } } },
    'x-kubernetes-group-version-kind': [kind],
  })
})

test('the index points to the documents', () => {
  assert.deepEqual(
    openApiV3Index(['apis/apps/v1'], () => 'ABC'),
    { paths: { 'apis/apps/v1': { serverRelativeURL: '/openapi/v3/apis/apps/v1?hash=ABC' } } },
  )
})
