import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResources } from '../discovery/resources.ts'
import { definitionOf, schemaFor, schemaOfDefinition } from './builtIn.ts'
import type { Field, Schema } from './schema.ts'

function at(schema: Schema | undefined, ...path: string[]): Field {
  const [head, ...rest] = path
  const field = schema?.fields?.get(head ?? '')
  assert.ok(field, `field ${head}`)
  return rest.length === 0 ? field : at(field.schema.type === 'object' ? field.schema : field.schema.element, ...rest)
}

test('every resource and subresource kind has a schema, except the options of connections', () => {
  const missing = builtInResources().flatMap((facts) => [
    ...(schemaFor(facts.group, facts.version, facts.kind) ? [] : [facts.kind]),
    ...facts.subresources.filter((sub) => !sub.connect && !schemaFor(sub.kind.group, sub.kind.version, sub.kind.kind)).map((sub) => sub.kind.kind),
  ])
  assert.deepEqual(missing, [])
})

test('a list of containers knows its keys, strategies and numbers', () => {
  const { schema, required, protobuf } = at(schemaFor('', 'v1', 'Pod'), 'spec', 'containers')
  const { type, listType, listMapKeys, patchStrategies, patchMergeKey, element } = schema
  assert.deepEqual(
    { type, listType, listMapKeys, patchStrategies, patchMergeKey, element: element?.definition, required, number: protobuf?.number },
    {
      type: 'array',
      listType: 'map',
      listMapKeys: ['name'],
      patchStrategies: ['merge'],
      patchMergeKey: 'name',
      element: 'io.k8s.api.core.v1.Container',
      required: true,
      number: 2,
    },
  )
})

test('inline messages of protobuf are known', () => {
  assert.deepEqual(at(schemaFor('', 'v1', 'Pod'), 'spec', 'volumes', 'emptyDir').protobuf?.within, [2])
})

test('defaults come from the markers', () => {
  assert.equal(at(schemaFor('', 'v1', 'Service'), 'spec', 'ports', 'protocol').default, 'TCP')
})

test('a recursive definition resolves', () => {
  const props = schemaOfDefinition('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps')
  assert.equal(at(props, 'properties').schema.element, props)
  assert.equal(at(props, 'not').schema, props)
})

test('an atomic definition is atomic, a retainKeys object keeps its fields', () => {
  assert.equal(at(schemaFor('apps', 'v1', 'Deployment'), 'spec', 'selector').schema.mapType, 'atomic')
  const strategy = at(schemaFor('apps', 'v1', 'Deployment'), 'spec', 'strategy').schema
  assert.deepEqual(strategy.patchStrategies, ['retainKeys'])
  assert.ok(strategy.fields?.has('rollingUpdate'))
})

test('DeleteOptions exists everywhere, unknown kinds nowhere', () => {
  assert.equal(schemaFor('apps', 'v1', 'DeleteOptions')?.definition, 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions')
  assert.equal(schemaFor('apps', 'v1', 'Pod'), undefined)
  assert.equal(definitionOf('apps', 'v1', 'Deployment'), 'io.k8s.api.apps.v1.Deployment')
})
