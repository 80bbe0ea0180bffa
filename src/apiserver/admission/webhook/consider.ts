/**
 * Decides whether a webhook whose rules match is called (L3), by its selectors and match conditions.
 * Upstream: ShouldCallHook of apiserver/pkg/admission/plugin/webhook/generic/webhook.go (v1.36).
 */
import type { GroupVersionKind } from '#api/machinery/meta'
import { forbidden } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import type { AdmissionMetrics, WebhookStep } from '../admissionMetrics.ts'
import { evaluateMatchConditions } from '../cel/matchConditions.ts'
import type { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { type Selectable, select } from '../matching/selectors.ts'
import type { VersionedObjects } from '../matching/versioned.ts'
import type { Candidate } from './hookIndex.ts'

export interface WebhookDeps {
  readonly reader: ObjectReader
  readonly authorizers: readonly Authorizer[]
  readonly random: Random
  readonly clock: Clock
  readonly metrics: AdmissionMetrics
  readonly tracer?: Tracer | undefined
}

/** The state of one request in webhook admission. */
export interface Passage {
  readonly attributes: AdmissionAttributes
  /** See requestNamespace. */
  readonly namespace: string
  readonly step: WebhookStep
  readonly authorizer: RequestAuthorizer
  /** The attributes with the object in its current state. */
  readonly subject: Selectable
  objectsAs(kind: GroupVersionKind): Promise<VersionedObjects>
}

/** @throws StatusError when its namespace is missing, or its conditions fail with the failure policy Fail */
export async function consider({ reader, clock, metrics }: WebhookDeps, { hook, invocation }: Candidate, passage: Passage): Promise<boolean> {
  const { attributes, namespace, step, authorizer } = passage
  const selected = select(hook.selectors, passage.subject, namespace, reader)
  if (selected === false) return false
  if (selected !== true) throw selected
  if (!hook.conditions) return true
  const input = { attributes, ...invocation, ...(await passage.objectsAs(invocation.kind)), authorizer }
  const owner = { name: hook.webhook.name, kind: 'webhook', type: step === 'admit' ? 'admit' : 'validating', operation: attributes.operation } as const
  const conditions = await hook.conditions()
  const startedMs = clock.monotonicMs()
  const outcome = await evaluateMatchConditions(conditions, input, hook.failsOpen ? 'Ignore' : 'Fail')
  metrics.conditionsEvaluated(owner, (clock.monotonicMs() - startedMs) / 1000, outcome.failures)
  if (outcome.error !== undefined) throw forbidden(attributes.resource, attributes.name, outcome.error)
  // Upstream's two metrics have different labels for validating webhooks.
  if (!outcome.matches) metrics.conditionsExcluded({ ...owner, type: step === 'admit' ? 'admit' : 'validate' })
  return outcome.matches
}
