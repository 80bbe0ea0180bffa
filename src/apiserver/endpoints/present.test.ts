/** Lists of computed objects, of which a few may be as large as many. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { protobufMediaType } from '#api/protobuf/envelope'
import type { Schema } from '#api/schema/schema'
import { longestTurn } from '#testing/longestTurn'
import type { AnswerForm } from '../core/negotiate.ts'
import type { ServerRequest } from '../core/request.ts'
import { presentComputedList } from './present.ts'

const text: Schema = { type: 'string' }
const field = (name: string, number: number, schema: Schema) => [name, { name, schema, required: false, protobuf: { number, type: '' } }] as const
const struct = (...fields: ReturnType<typeof field>[]): Schema => ({ type: 'object', fields: new Map(fields) })
const schema = struct(field('metadata', 1, struct(field('name', 1, text))), field('parts', 2, { type: 'array', element: text }))
const facts = { group: 'g', version: 'v1', kind: 'Whole', resource: 'wholes' }
const listSchema = struct(field('metadata', 1, struct()), field('items', 2, { type: 'array', element: schema }))
/** Takes long enough that the rows of one slice are few on any processor and line of Node.js. */
const slowly = (object: unknown) => Array.from({ length: 5 }, () => JSON.stringify(object).length).length
const columns = [{ name: 'Name', type: 'string', value: slowly }]
const kind = { facts, columns, listKind: 'WholeList', schema, listSchema } as unknown as Parameters<typeof presentComputedList>[3]

const large = (index: number): KubeObject => {
  const parts = Array.from({ length: 5_000 }, (_, part) => `part ${part} of ${index}`)
  return { apiVersion: 'g/v1', kind: 'Whole', metadata: { name: `n${index}` }, parts } as KubeObject
}
const objects = Array.from({ length: 200 }, (_, index) => large(index))

const request = { query: new URLSearchParams() } as unknown as ServerRequest
const forms: readonly (readonly [what: string, form: AnswerForm, request?: ServerRequest])[] = [
  ['JSON', { mediaType: 'application/json', as: undefined }],
  ['indented JSON', { mediaType: 'application/json', as: undefined, pretty: true }],
  ['protobuf', { mediaType: protobufMediaType, as: undefined }],
  ['YAML', { mediaType: 'application/yaml', as: undefined }],
  ['a table', { mediaType: 'application/json', as: 'Table' }],
  ['a table for a component of the process', { mediaType: 'application/json', as: 'Table' }, { ...request, inProcessUser: { name: 'u', groups: [] } }],
].map((one) => one as unknown as (typeof forms)[number])

for (const [what, form, asked = request] of forms) {
  test(`API-17 a computed list of few large objects takes many short turns of the event loop, ${what}`, async () => {
    const { longestMs, totalMs } = await longestTurn(() => presentComputedList(asked, form, objects, kind, 0))
    assert.ok(longestMs < totalMs / 2, `a turn of ${Math.round(longestMs)} ms in ${Math.round(totalMs)} ms`)
  })
}

test('API-17 a computed list of two objects is written as one of many is', async () => {
  const form = forms[0]?.[1] as AnswerForm
  const answer = await presentComputedList(request, form, [large(1), large(2)], kind, 0)
  const { items, ...head } = JSON.parse(String((answer as { bytes: Uint8Array }).bytes))
  assert.deepEqual(head, { kind: 'WholeList', apiVersion: 'g/v1', metadata: {} })
  assert.deepEqual(
    items.map((item: object) => Object.keys(item)),
    [
      ['metadata', 'parts'],
      ['metadata', 'parts'],
    ],
  )
})
