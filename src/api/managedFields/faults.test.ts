import assert from 'node:assert/strict'
import test from 'node:test'
import { schemaFor } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { configurationFaults } from './faults.ts'

const pods = schemaFor('', 'v1', 'Pod')
const set: Schema = { type: 'array', listType: 'set', element: { type: 'any' } }
const containers = (...list: object[]) => ({ spec: { containers: list } })

const cases: readonly { name: string; value: unknown; schema?: Schema; want: string[] }[] = [
  { name: 'none', value: containers({ name: 'a', env: [{ name: 'X' }] }, { name: 'b', env: [{ name: 'X' }] }), want: [] },
  { name: 'one name twice', value: containers({ name: 'a' }, { name: 'a' }), want: ['.spec.containers: duplicate entries for key [name="a"]'] },
  {
    name: 'inside an item',
    value: containers({
      name: 'a',
      env: [
        { name: 'X', value: '1' },
        { name: 'X', value: '2' },
      ],
    }),
    want: ['.spec.containers[name="a"].env: duplicate entries for key [name="X"]'],
  },
  {
    name: 'a key that counts with its default',
    value: containers({ name: 'a', ports: [{ containerPort: 80 }, { containerPort: 80, protocol: 'TCP' }, { containerPort: 80, protocol: 'UDP' }] }),
    want: ['.spec.containers[name="a"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]'],
  },
  {
    name: 'an item without its key',
    value: containers({ image: 'a' }),
    want: [
      `.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)`,
    ],
  },
  { name: 'a set', value: { list: ['x', 'x'] }, schema: { type: 'map', element: set }, want: ['.list: duplicate entries for key [="x"]'] },
  {
    name: 'a set of objects',
    value: { list: [{}] },
    schema: { type: 'map', element: set },
    want: [".list: element 0: associative list without keys has an element that's a map type"],
  },
  { name: 'an atomic list may repeat itself', value: containers({ name: 'a', command: ['x', 'x'] }), want: [] },
]
for (const { name, value, schema = pods, want } of cases) {
  test(`API-11 what an applied list may not hold: ${name}`, () => assert.deepEqual(configurationFaults(value, schema), want))
}
