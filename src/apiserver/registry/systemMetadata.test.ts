import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptSystemMetadata, newSystemMetadata } from './systemMetadata.ts'

test('API-27 a new object gets its identity from the server, and the deletion fields of the client are dropped', () => {
  const sent = { labels: { a: 'b' }, uid: 'mine', deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 3, selfLink: '/x', name: 'n' }
  const made = newSystemMetadata(sent, { uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' })
  assert.deepEqual(made, { name: 'n', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z', labels: { a: 'b' } })
  assert.deepEqual(Object.keys(made), ['name', 'uid', 'creationTimestamp', 'labels'], 'in the order of upstream')
})

test('API-27 a changed object keeps its identity, generation and deletion', () => {
  const old = { name: 'n', uid: 'u', resourceVersion: '7', generation: 2, creationTimestamp: 'c', deletionTimestamp: 'd', deletionGracePeriodSeconds: 30 }
  const kept = keptSystemMetadata({ name: 'n', generation: 99, finalizers: ['f'] }, old)
  assert.deepEqual(kept, { ...old, finalizers: ['f'] })
  const live = keptSystemMetadata({ name: 'n', deletionTimestamp: 'forged' }, { name: 'n', uid: 'u', resourceVersion: '7' })
  assert.deepEqual(live, { name: 'n', uid: 'u', resourceVersion: '7' })
})

test('API-03 a changed uid or creation time of the client stays, so that validation can refuse it', () => {
  const kept = keptSystemMetadata({ name: 'n', uid: 'other', creationTimestamp: 'other' }, { name: 'n', uid: 'u', creationTimestamp: 'c' })
  assert.deepEqual([kept.uid, kept.creationTimestamp], ['other', 'other'])
})
