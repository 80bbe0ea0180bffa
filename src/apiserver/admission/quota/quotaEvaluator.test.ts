import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { QuotaEvaluator } from './quotaEvaluator.ts'

test('RES-03 an update that adds nothing does not wait behind a write whose quota cannot be stored', async () => {
  const clock = new VirtualClock()
  const counted = { 'requests.storage': '10Gi' }
  const quota = { metadata: { name: 'q', namespace: 'n' }, spec: {}, status: { hard: counted, used: { 'requests.storage': '1Gi' } } }
  const reader = { list: () => [quota] } as unknown as ObjectReader
  const transport = { request: () => new Promise(() => {}) } as unknown as Transport
  const evaluator = new QuotaEvaluator({ reader, clock, transport: () => transport }, [])
  const claim = (storage: string) => ({ metadata: { name: 'c' }, spec: { resources: { requests: { storage } } } })
  const ask = (operation: string, storage: string) => {
    const resource = { group: '', version: 'v1', resource: 'persistentvolumeclaims' }
    const attributes = { operation, resource, subresource: '', namespace: 'n', object: claim(storage), oldObject: claim('1Gi') }
    return evaluator.evaluate(attributes as unknown as AdmissionAttributes)
  }
  const timedOut = [ask('CREATE', '1Gi'), ask('UPDATE', '2Gi')].map((waiting) => assert.rejects(waiting ?? Promise.resolve(), (error) => isStatus(error)))
  assert.equal(ask('UPDATE', '1Gi'), undefined)
  await clock.advance(10_000)
  await Promise.all(timedOut)
})
