import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attachmentsOf, type ParentKey } from './attachments.ts'

const route = { kind: 'HTTPRoute', namespace: 'd', hosts: [''] }
const service = { group: '', kind: 'Service', name: 'web', port: 80 }

test('MSH-04 a Service as the parent of a route is left to a mesh: the controller neither serves it nor writes a status for it', () => {
  const asked: string[] = []
  const parentOf = ({ key }: ParentKey) => {
    asked.push(key)
    return { gateway: key, listeners: [] }
  }
  assert.deepEqual(attachmentsOf(route, [service], parentOf), [])
  const both = attachmentsOf(route, [service, { name: 'web' }], parentOf)
  assert.deepEqual(
    both.map(({ parentRef, accepted }) => [parentRef.name, accepted.reason]),
    [['web', 'NoMatchingParent']],
  )
  assert.deepEqual(asked, ['d/web'])
})
