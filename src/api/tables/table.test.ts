import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../machinery/meta.ts'
import { type TableColumn, toTable } from './table.ts'

const columns: TableColumn<KubeObject>[] = [
  { name: 'Name', type: 'string', format: 'name', value: (o) => o.metadata.name },
  { name: 'Born', type: 'date', value: (o) => o.metadata.creationTimestamp },
  { name: 'Nothing', type: 'string', priority: 1, value: () => undefined },
]
const object: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' } }
const nowMs = Date.UTC(2026, 0, 1, 0, 5)

test('API-17 a table holds definitions, cells and the metadata of each row', () => {
  assert.deepEqual(toTable([object], columns, nowMs, 'Metadata', { resourceVersion: '7' }), {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: '7' },
    columnDefinitions: [
      { name: 'Name', type: 'string', format: 'name', description: '', priority: 0 },
      { name: 'Born', type: 'date', format: '', description: '', priority: 0 },
      { name: 'Nothing', type: 'string', format: '', description: '', priority: 1 },
    ],
    rows: [{ cells: ['a', '5m', null], object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata } }],
  })
})

test('API-17 includeObject decides what a row carries', () => {
  assert.deepEqual(
    (['None', 'Object'] as const).map((include) => toTable([object], columns, nowMs, include).rows[0]?.object),
    [null, object],
  )
})
