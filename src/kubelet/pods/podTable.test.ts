import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { createPodTable, type Worker } from './podTable.ts'

test('KUB-02 a wait for the end of a pod leaves no listener on the signal of the kubelet', async () => {
  const stop = new AbortController()
  const table = createPodTable(stop.signal)
  const worker = { isFinished: false, terminationCallbacks: [] } as unknown as Worker
  table.workers.set('uid-1', worker)
  const waits = [table.ended('uid-1'), table.ended('uid-1')]
  for (const callback of worker.terminationCallbacks) callback()
  await Promise.all(waits)
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
  const last = table.ended('uid-1')
  stop.abort()
  await last
})

test('KUB-08 a pod that was deleted without a grace period takes no room on its node, while its containers end', () => {
  const table = createPodTable(new AbortController().signal)
  const worker = (name: string, removed: boolean) => ({ pod: { metadata: { name } }, removed }) as unknown as Worker
  table.workers.set('uid-1', worker('ending', true))
  table.workers.set('uid-2', worker('running', false))
  assert.deepEqual(
    table.present().map(({ metadata }) => metadata.name),
    ['running'],
  )
  assert.equal(table.list().length, 2, 'its worker goes on')
})
