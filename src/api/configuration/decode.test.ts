import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeConfiguration } from './decode.ts'
import { boolean, kind, list, struct, text } from './schemas.ts'

const kinds = [
  {
    kind: 'Thing',
    apiVersions: ['x.io/v1', 'x.io/v1beta1'],
    schema: kind('Thing', { items: list(struct('Item', { name: text, active: boolean })), alias: text }),
  },
]

test('YAML and JSON decode to the same configuration', () => {
  const value = { apiVersion: 'x.io/v1beta1', kind: 'Thing', items: [{ name: 'a', active: true }] }
  const yaml = 'apiVersion: x.io/v1beta1\nkind: Thing\nitems:\n- name: a\n  active: true\n'
  for (const content of [yaml, JSON.stringify(value)])
    assert.deepEqual(decodeConfiguration(content, kinds), { kind: 'Thing', apiVersion: 'x.io/v1beta1', value })
})

const head = 'apiVersion: x.io/v1\nkind: Thing\n'
const refused: { name: string; content: string; why: RegExp }[] = [
  { name: 'nothing', content: '', why: /^empty config data$/ },
  { name: 'no kind', content: 'apiVersion: x.io/v1\n', why: /^Object 'Kind' is missing in/ },
  { name: 'another version', content: 'apiVersion: x.io/v2\nkind: Thing\n', why: /^no kind "Thing" is registered for version "x.io\/v2"$/ },
  {
    name: 'unknown fields',
    content: `${head}items:\n- nam: a\nother: 1\n`,
    why: /^strict decoding error: unknown field "items\[0\].nam", unknown field "other"$/,
  },
  {
    name: 'a field twice in JSON',
    content: '{"apiVersion":"x.io/v1","kind":"Thing","alias":"a","alias":"b"}',
    why: /^strict decoding error: duplicate field "alias"$/,
  },
  { name: 'a field twice in YAML', content: `${head}alias: a\nalias: b\n`, why: /line 4: .*duplicated mapping key|already set/ },
  { name: 'a wrong type', content: `${head}items:\n- active: "yes"\n`, why: /cannot unmarshal string into Go struct field Item.items.active of type bool/ },
  { name: 'no YAML', content: 'a: [', why: /^error converting YAML to JSON: yaml:/ },
]
for (const { name, content, why } of refused) {
  test(`refused: ${name}`, () => {
    assert.throws(
      () => decodeConfiguration(content, kinds),
      (error: Error) => assert.match(error.message, why) === undefined,
    )
  })
}
