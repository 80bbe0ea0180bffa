/**
 * Calls the mutating webhooks that match a request in order (L3): each gets the object as the webhooks before it left it. When the
 * object changes, earlier webhooks with reinvocationPolicy IfNeeded are called again in a second round.
 * Upstream: apiserver/pkg/admission/plugin/webhook/mutating/{dispatcher,reinvocationcontext}.go (v1.36).
 */

import { semanticEqual } from '#api/machinery/equality'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseJson } from '#api/machinery/json'
import { type Frozen, groupVersion, type KubeObject } from '#api/machinery/meta'
import { internalError, isStatus } from '#api/machinery/status'
import { applyJsonPatch, type JsonPatchOperation, parseJsonPatch } from '#api/patch/jsonPatch'
import { withNils } from '#api/schema/nils'
import type { AdmissionAttributes } from '../admission.ts'
import { requestNamespace } from '../attributes.ts'
import { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { decodeChanged } from '../matching/decodeChanged.ts'
import { MutableObject } from '../matching/versioned.ts'
import { askForSecondRound, type RoundMemory, roundMemory } from '../reinvocation.ts'
import { consider, type Passage, type WebhookDeps } from './consider.ts'
import type { Hook } from './hook.ts'
import type { Candidate, HookIndex } from './hookIndex.ts'
import { measuredCall } from './measuredCall.ts'
import { CallError } from './outcome.ts'
import { ObjectTexts, type Verdict } from './review.ts'

export function mutateByWebhooks(deps: WebhookDeps, index: HookIndex, attributes: AdmissionAttributes): Promise<void> | undefined {
  const namespace = requestNamespace(attributes)
  const candidates = index.candidates(attributes, namespace)
  return candidates.length === 0 ? undefined : mutate(deps, candidates, attributes, namespace)
}

async function mutate(deps: WebhookDeps, candidates: readonly Candidate[], attributes: AdmissionAttributes, namespace: string): Promise<void> {
  const memory = roundMemory(attributes, 'MutatingAdmissionWebhook')
  const object = new MutableObject(attributes)
  const { resource, subresource, operation, oldObject } = attributes
  const passage: Passage = {
    attributes,
    namespace,
    step: 'admit',
    authorizer: new RequestAuthorizer(deps.authorizers, attributes, namespace),
    get subject() {
      return { resource, subresource, operation, oldObject, object: object.current }
    },
    objectsAs: (kind) => object.as(kind),
  }
  try {
    for (const candidate of candidates) {
      if (!(await consider(deps, candidate, passage))) continue
      // The second round calls only webhooks that the first round called and after which the object changed.
      if (memory.isSecondRound && !memory.isDue(candidate.hook.uid)) continue
      const changed = await mutateByOne(deps, candidate, passage, object, memory)
      if (changed) askForSecondRound(attributes, memory)
      if ('reinvocationPolicy' in candidate.hook.webhook && candidate.hook.webhook.reinvocationPolicy === 'IfNeeded') memory.invoked(candidate.hook.uid)
    }
    await object.finish()
  } finally {
    memory.keep(attributes.object)
  }
}

/** Whether the webhook changed the object. */
async function mutateByOne(
  deps: WebhookDeps,
  { hook, invocation, index }: Candidate,
  { attributes }: Passage,
  object: MutableObject,
  memory: RoundMemory,
): Promise<boolean> {
  const objects = await object.as(invocation.kind)
  const place = `round_${memory.isSecondRound ? 1 : 0}_index_${index}`
  const names = { configuration: hook.configuration, webhook: hook.webhook.name }
  let changed = false
  let answered: object | undefined
  try {
    const call = { hook, invocation, attributes, objects, texts: new ObjectTexts(), mutating: true }
    answered = await measuredCall(deps, call, 'admit', (verdict) => {
      const patch = patchOf(hook, verdict)
      if (patch.length === 0) return
      const made = patched(hook, attributes, objects.object, patch, groupVersion(invocation.kind))
      changed = !semanticEqual(objects.object, made)
      attributes.annotate?.(`patch.webhook.admission.k8s.io/${place}`, stringifyExactly({ ...names, patch, patchType: 'JSONPatch' }), 'Request')
      object.replace(made)
    })
  } finally {
    attributes.annotate?.(`mutation.webhook.admission.k8s.io/${place}`, JSON.stringify({ ...names, mutated: changed }))
  }
  if (!answered) attributes.annotate?.(`failed-open.mutation.webhook.admission.k8s.io/${place}`, hook.webhook.name)
  return changed
}

/** @throws CallError when the answer is not a patch */
function patchOf({ webhook }: Hook, { patch, patchType }: Verdict): readonly JsonPatchOperation[] {
  if (patch === '') return []
  let operations: readonly JsonPatchOperation[]
  try {
    const parsed = parseJson(patch).value
    operations = parsed === null ? [] : parseJsonPatch(parsed)
  } catch (error) {
    throw new CallError(webhook.name, `received undecodable patch in webhook response: ${(error as Error).message}`, 503)
  }
  if (operations.length > 0 && patchType !== 'JSONPatch') throw new CallError(webhook.name, `unsupported patch type ${JSON.stringify(patchType)}`, 400)
  return operations
}

function patched(
  { webhook }: Hook,
  attributes: AdmissionAttributes,
  object: Frozen<KubeObject> | undefined,
  patch: readonly JsonPatchOperation[],
  apiVersion: string,
): KubeObject {
  const name = JSON.stringify(webhook.name)
  if (!object) throw internalError(new Error(`admission webhook ${name} attempted to modify the object, which is not supported for this operation`))
  try {
    return decodeChanged(applyJsonPatch(withNils(object), patch), attributes, apiVersion)
  } catch (error) {
    // The error of the failed operation is more specific than the general refusal.
    throw internalError(isStatus(error) && error.cause instanceof Error ? error.cause : error)
  }
}
