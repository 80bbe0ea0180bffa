import assert from 'node:assert/strict'
import { test } from 'node:test'
import { internalError, notFound } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { Client } from '#client/client'
import { syncedIfServed } from './following.ts'
import { tlsRoutes } from './gatewayResources.ts'

/** An informer that is never read, and an API that answers the lists of its kind with these in turn. */
function started(...answers: (Error | 'list')[]) {
  const clock = new VirtualClock()
  const stop = new AbortController()
  let asked = 0
  let isRead = false
  let waiting = () => {}
  const list = async () => {
    const answer = answers[asked++]
    if (answer instanceof Error) throw answer
    return { items: [] }
  }
  const synced = () =>
    new Promise<void>((resolve) => {
      waiting = resolve
    })
  const informer = { resource: tlsRoutes, hasSynced: () => isRead, synced }
  let isOver = false
  const ended = syncedIfServed(informer, { of: () => ({ list }) } as unknown as Client, clock, stop.signal).then(() => {
    isOver = true
  })
  const read = () => {
    isRead = true
    waiting()
  }
  return { clock, ended, read, asked: () => asked, isOver: () => isOver }
}

test('ING-05 the wait for a kind that the API does not serve ends, so that the kinds that it serves are followed', async () => {
  const { ended, asked } = started(notFound({ group: 'gateway.networking.k8s.io', resource: 'tlsroutes' }, ''))
  await ended
  assert.equal(asked(), 1)
})

test('ING-05 the wait for a kind that the API serves ends when its objects are read, and an API that fails is asked again', async () => {
  const { clock, ended, read, asked, isOver } = started(internalError(new Error('no store')), 'list')
  await clock.advance(999)
  assert.deepEqual([asked(), isOver()], [1, false])
  await clock.advance(1)
  assert.deepEqual([asked(), isOver()], [2, false])
  read()
  await ended
})
