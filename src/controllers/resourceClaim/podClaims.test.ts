import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { claimNameOf, generatedNamePrefix, isPodDone, knownClaimNames } from './podClaims.ts'

const pod = (status: Partial<Pod['status']> = {}, more: Partial<Pod['metadata']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', ...more },
  spec: {
    containers: [],
    resourceClaims: [
      { name: 'a', resourceClaimName: 'mine' },
      { name: 'b', resourceClaimTemplateName: 't' },
    ],
  },
  status,
})
const ofTemplate = { name: 'b', resourceClaimTemplateName: 't' }

test('SCH-20 CTL-22 a claim is named by the pod, made from a template, not needed or missing', () => {
  assert.deepEqual(claimNameOf(pod(), { name: 'a', resourceClaimName: 'mine' }), { state: 'known', name: 'mine', mustBeOwned: false })
  assert.deepEqual(claimNameOf(pod(), ofTemplate), { state: 'missing' })
  assert.deepEqual(claimNameOf(pod({ resourceClaimStatuses: [{ name: 'b' }] }), ofTemplate), { state: 'unneeded' })
  const made = pod({ resourceClaimStatuses: [{ name: 'b', resourceClaimName: 'p-b-x' }] })
  assert.deepEqual(claimNameOf(made, ofTemplate), { state: 'known', name: 'p-b-x', mustBeOwned: true })
  assert.deepEqual(knownClaimNames(made), ['mine', 'p-b-x'])
})

test('SCH-20 CTL-22 long names of pod and claim are both cut', () => {
  assert.equal(generatedNamePrefix('p', 'b'), 'p-b-')
  const prefix = generatedNamePrefix('p'.repeat(60), 'b'.repeat(60))
  assert.match(prefix, /^p{27,28}-b{27,28}-$/)
})

test('SCH-20 CTL-22 a pod is done when it has ended, or was deleted before it got a node', () => {
  assert.deepEqual([isPodDone(pod()), isPodDone(pod({ phase: 'Succeeded' })), isPodDone(pod({}, { deletionTimestamp: 'x' }))], [false, true, true])
})
