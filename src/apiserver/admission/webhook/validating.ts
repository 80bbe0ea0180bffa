/**
 * Asks the validating webhooks that are about a request, all at the same time (L3); the first of them that refuses, in their order, decides.
 * Upstream: apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { AdmissionAttributes } from '../admission.ts'
import { requestNamespace } from '../attributes.ts'
import { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { VersionedViews } from '../matching/versioned.ts'
import { consider, type Passage, type WebhookDeps } from './consider.ts'
import type { Candidate, HookIndex } from './hookIndex.ts'
import { measuredCall } from './measuredCall.ts'
import { requestTimeout } from './outcome.ts'
import { ObjectTexts } from './review.ts'

export function validateByWebhooks(deps: WebhookDeps, index: HookIndex, attributes: AdmissionAttributes): Promise<void> | undefined {
  const namespace = requestNamespace(attributes)
  const candidates = index.candidates(attributes, namespace)
  return candidates.length === 0 ? undefined : validate(deps, candidates, attributes, namespace)
}

async function validate(deps: WebhookDeps, candidates: readonly Candidate[], attributes: AdmissionAttributes, namespace: string): Promise<void> {
  const views = new VersionedViews(attributes)
  const passage: Passage = {
    attributes,
    namespace,
    step: 'validating',
    authorizer: new RequestAuthorizer(deps.authorizers, attributes, namespace),
    subject: attributes as AdmissionAttributes & { readonly object?: Frozen<KubeObject> },
    objectsAs: (kind) => views.of(kind),
  }
  const relevant: Candidate[] = []
  for (const candidate of candidates) if (await consider(deps, candidate, passage)) relevant.push(candidate)
  if (relevant.length === 0) return
  if (attributes.cancellation?.aborted) throw requestTimeout()
  const texts = new ObjectTexts()
  const outcomes = await Promise.allSettled(
    relevant.map(async ({ hook, invocation }, place) => {
      const call = { hook, invocation, attributes, objects: await views.of(invocation.kind), texts, mutating: false }
      const answered = await measuredCall(deps, call, 'validating', () => true)
      if (!answered) attributes.annotate?.(`failed-open.validating.webhook.admission.k8s.io/round_0_index_${place}`, hook.webhook.name)
    }),
  )
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}
