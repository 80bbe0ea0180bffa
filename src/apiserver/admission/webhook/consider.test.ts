/** ADM-03: a webhook whose conditions do not hold is counted as upstream counts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ValidatingWebhook } from '#api/gen/types/admissionregistration.v1'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createWebhookPool } from '../../webhooks/webhookClient.ts'
import type { AdmissionMetrics, MatchConditionOwner } from '../admissionMetrics.ts'
import { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { consider } from './consider.ts'
import { type Hook, hooksOf } from './hook.ts'
import { nodeCreation as attributes, nodeKind } from './testAttributes.ts'

for (const [step, excludedAs] of [
  ['validating', 'validate'],
  ['admit', 'admit'],
] as const) {
  test(`a false condition of a webhook that is asked to ${step}`, async () => {
    const counted: [string, MatchConditionOwner][] = []
    const metrics: AdmissionMetrics = {
      called: () => assert.fail(),
      rejected: () => assert.fail(),
      failedOpen: () => assert.fail(),
      conditionsEvaluated: (owner) => counted.push(['evaluated', owner]),
      conditionsExcluded: (owner) => counted.push(['excluded', owner]),
      deprecatedCertificate: () => assert.fail(),
    }
    const webhook: ValidatingWebhook = {
      name: 'w',
      clientConfig: { url: 'https://127.0.0.1:1' },
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      matchConditions: [{ name: 'c', expression: 'false' }],
    }
    const configuration = { apiVersion: 'v1', kind: 'ValidatingWebhookConfiguration', metadata: { name: 'c' }, webhooks: [webhook] }
    const [hook] = hooksOf(configuration, { resolve: () => assert.fail(), pool: () => createWebhookPool() }) as [Hook]
    const reader = { get: () => undefined, list: () => [], onChange: () => () => undefined }
    const deps = { reader, authorizers: [], random: seededRandom(1), clock: new VirtualClock(0), metrics }
    const objects = { object: undefined, oldObject: undefined }
    const authorizer = new RequestAuthorizer([], attributes, '')
    const passage = { attributes, namespace: '', step, authorizer, subject: attributes as never, objectsAs: async () => objects }
    assert.equal(await consider(deps, { hook, index: 0, invocation: { resource: nodeKind, kind: nodeKind } }, passage), false)
    const owner = { name: 'w', kind: 'webhook', operation: 'CREATE' }
    assert.deepEqual(counted, [
      ['evaluated', { ...owner, type: step }],
      ['excluded', { ...owner, type: excludedAs }],
    ])
  })
}
