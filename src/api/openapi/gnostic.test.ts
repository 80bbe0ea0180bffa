import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { builtInResources } from '../discovery/resources.ts'
import { openApiV2 } from './document.ts'
import { encodeGnostic } from './gnostic.ts'

/** Every field of a message as [number, bytes or value], in order. */
function fields(bytes: Uint8Array): (readonly [number, Uint8Array | number])[] {
  const reader = new BinaryReader(bytes)
  const found: (readonly [number, Uint8Array | number])[] = []
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag()
    found.push([number, wire === WireType.LengthDelimited ? reader.bytes() : reader.uint32()])
  }
  return found
}

function follow(bytes: Uint8Array, ...path: number[]): Uint8Array {
  return path.reduce((at, number) => {
    const found = fields(at).find(([candidate]) => candidate === number)?.[1]
    assert.ok(found instanceof Uint8Array, `field ${number}`)
    return found
  }, bytes)
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

test('API-15 a schema is encoded with its reference, type and extensions', () => {
  const bytes = encodeGnostic({
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'v1.36.0' },
    definitions: {
      A: { type: 'object', required: ['b'], properties: { b: { $ref: '#/definitions/B', 'x-kubernetes-list-map-keys': ['name'] } } },
    },
  })
  assert.equal(text(follow(bytes, 1)), '2.0')
  assert.equal(text(follow(bytes, 2, 2)), 'v1.36.0')
  const schema = follow(bytes, 9, 1, 2)
  assert.equal(text(follow(bytes, 9, 1, 1)), 'A')
  assert.equal(text(follow(schema, 22, 1)), 'object')
  assert.equal(text(follow(schema, 19)), 'b')
  const property = follow(schema, 25, 1)
  assert.equal(text(follow(property, 1)), 'b')
  assert.equal(text(follow(property, 2, 1)), '#/definitions/B')
  assert.equal(text(follow(property, 2, 31, 1)), 'x-kubernetes-list-map-keys')
  assert.equal(text(follow(property, 2, 31, 2, 2)), '["name"]\n')
})

test('API-15 an operation is encoded with a body, an own query parameter and a shared one', () => {
  const bytes = encodeGnostic({
    paths: {
      '/a': {
        patch: {
          operationId: 'patchA',
          parameters: [
            { name: 'body', in: 'body', required: true, schema: { $ref: '#/definitions/P' } },
            { name: 'dryRun', in: 'query', type: 'string' },
            { $ref: '#/parameters/pretty' },
          ],
          responses: { 200: { description: 'OK', schema: { type: 'string' } } },
        },
      },
    },
  })
  const patch = follow(bytes, 8, 2, 2, 8)
  assert.equal(text(follow(patch, 5)), 'patchA')
  const items = fields(patch).filter(([number]) => number === 8)
  const [body, query, shared] = items.map(([, value]) => value as Uint8Array)
  assert.ok(body && query && shared)
  assert.equal(text(follow(body, 1, 1, 5, 1)), '#/definitions/P')
  assert.equal(text(follow(query, 1, 2, 3, 4)), 'dryRun')
  assert.equal(text(follow(shared, 2, 1)), '#/parameters/pretty')
  assert.equal(text(follow(patch, 9, 1, 1)), '200')
  assert.equal(text(follow(patch, 9, 1, 2, 1, 2, 1, 22, 1)), 'string')
})

test('API-15 the whole document encodes', () => {
  const bytes = encodeGnostic(openApiV2({ resources: builtInResources(), describe: () => undefined, serverVersion: 'v1.36.0' }))
  assert.equal(fields(follow(bytes, 8)).length, 383 + 21 + 4)
})
