import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Column, cellText, keyOfRow, matcher, type Row, shownColumns, sortRows } from './tables.ts'

const columns: Column[] = [
  { name: 'Name', type: 'string' },
  { name: 'Restarts', type: 'integer' },
  { name: 'Age', type: 'string' },
  { name: 'Node', type: 'string', priority: 1 },
]
const row = (name: string, restarts: number, created: string, namespace = 'a', labels: Record<string, string> = {}): Row => ({
  cells: [name, restarts, '5m', `node-${name}`],
  object: { metadata: { name, namespace, uid: `${namespace}-${name}`, creationTimestamp: created, labels } },
})
const rows = new Map(
  [
    row('web-10', 2, '2026-01-01T00:00:00Z', 'b', { app: 'web' }),
    row('web-9', 10, '2026-01-02T00:00:00Z', 'b', { app: 'web' }),
    row('db-1', 0, '2026-01-03T00:00:00Z'),
  ].map((one) => [keyOfRow(one), one]),
)

const cases: readonly {
  readonly name: string
  readonly text?: string
  readonly by?: string
  readonly descending?: boolean
  readonly want: readonly string[]
}[] = [
  { name: 'by namespace and name, numbers in names as numbers', want: ['db-1', 'web-9', 'web-10'] },
  { name: 'by a column of numbers', by: 'Restarts', want: ['db-1', 'web-10', 'web-9'] },
  { name: 'by a column, the greatest first', by: 'Restarts', descending: true, want: ['web-9', 'web-10', 'db-1'] },
  { name: 'by age, the youngest first', by: 'Age', want: ['db-1', 'web-9', 'web-10'] },
  { name: 'with a word in the name', text: 'WEB', want: ['web-9', 'web-10'] },
  { name: 'with two words, one of them a namespace', text: 'b 9', want: ['web-9'] },
  { name: 'without a word', text: '!web', want: ['db-1'] },
  { name: 'with a label', text: 'app=web !web-10', want: ['web-9'] },
  { name: 'with a label that no object has', text: 'app=db', want: [] },
]
for (const { name, text = '', by = '', descending = false, want } of cases) {
  test(`ARC-16 the page selects rows ${name}`, () => {
    assert.deepEqual(
      sortRows(rows, { by, descending, columns })
        .filter(matcher(text))
        .map(({ object }) => object.metadata.name),
      want,
    )
  })
}

test('ARC-16 rows that were in order are in order again after some are changed, added and deleted', () => {
  const order = { by: '', descending: false, columns }
  const before = sortRows(rows, order)
  const changed = row('db-1', 7, '2026-01-03T00:00:00Z')
  const next = new Map([...rows, [keyOfRow(changed), changed], ...[row('web-11', 0, '', 'b'), row('a', 0, '')].map((one) => [keyOfRow(one), one] as const)])
  next.delete('b-web-9')
  const found = sortRows(next, order, before)
  assert.deepEqual(found, sortRows(next, order))
  assert.deepEqual(
    found.map(({ cells: [name, restarts] }) => `${name} ${restarts}`),
    ['a 0', 'db-1 7', 'web-10 2', 'web-11 0'],
  )
})

test('ARC-16 columns of the wide form are shown when they are wanted, with their place in the cells', () => {
  assert.deepEqual(
    shownColumns(columns, false).map(({ name }) => name),
    ['Name', 'Restarts', 'Age'],
  )
  assert.equal(shownColumns(columns, true).at(-1)?.index, 3)
  assert.deepEqual([null, undefined, 3, true, { a: 1 }].map(cellText), ['', '', '3', 'true', '{"a":1}'])
})
