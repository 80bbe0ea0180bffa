/**
 * Calls one webhook for one request (L3): sends the review, reads the answer with annotations and warnings, and its refusal.
 * Upstream: callHook and callAttrMutatingHook of apiserver/pkg/admission/plugin/webhook/{validating,mutating}/dispatcher.go (v1.36).
 */
import { badRequest, isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import { randomUid } from '#base/random'
import { traceHeaders } from '#base/traceContext'
import { isLargeObject, turn } from '../../core/fairLoop.ts'
import { type DeprecatedCertificate, deprecatedCertificate, type PostOptions, parseAnswer, postText, type WebhookAnswer } from '../../webhooks/webhookClient.ts'
import type { AdmissionAttributes } from '../admission.ts'
import type { Invocation } from '../matching/rules.ts'
import type { VersionedObjects } from '../matching/versioned.ts'
import type { WebhookDeps } from './consider.ts'
import type { Hook } from './hook.ts'
import { CallError, rejectionOf } from './outcome.ts'
import { type ObjectTexts, reviewText, reviewVersionOf, type Verdict, verdictOf } from './review.ts'

/** Larger than any object with its patch. */
const maxAnswerBytes = 16 * 1024 * 1024
const harmless: ReadonlySet<string> = new Set(['None', 'NoneOnDryRun'])

export interface HookCall {
  readonly hook: Hook
  readonly invocation: Invocation
  readonly attributes: AdmissionAttributes
  readonly objects: VersionedObjects
  /** The objects as JSON; shared by calls between which they do not change. */
  readonly texts: ObjectTexts
  readonly mutating: boolean
}

type CallDeps = Pick<WebhookDeps, 'clock' | 'random' | 'metrics' | 'tracer'>

/** The verdict of a webhook that allows the request. @throws CallError, Rejection, or StatusError BadRequest for a dry run that it may not see */
export async function callHook(call: HookCall, deps: CallDeps): Promise<Verdict> {
  const { hook, attributes } = call
  const { webhook } = hook
  const name = JSON.stringify(webhook.name)
  if (attributes.dryRun && !harmless.has(webhook.sideEffects)) throw badRequest(`admission webhook ${name} does not support dry run`)
  const verdict = await ask(call, deps)
  for (const [key, value] of Object.entries(verdict.auditAnnotations)) attributes.annotate?.(`${webhook.name}/${key}`, value)
  for (const warning of verdict.warnings) attributes.warn(warning)
  if (!verdict.allowed) throw rejectionOf(webhook.name, verdict.result)
  return verdict
}

async function ask({ hook, invocation, attributes, objects, texts, mutating }: HookCall, { clock, random, metrics, tracer }: CallDeps): Promise<Verdict> {
  const { webhook } = hook
  const uid = randomUid(random)
  const version = reviewVersionOf(webhook.admissionReviewVersions)
  if (version === undefined) {
    throw new CallError(webhook.name, 'could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)', 400)
  }
  const { cancellation } = attributes
  const review = reviewText(version, uid, attributes, invocation, { object: texts.of(objects.object), oldObject: texts.of(objects.oldObject) })
  // All validating webhooks of a request are called at once, and each review has the whole object.
  if (isLargeObject(review.length)) await turn()
  const timeoutMs = (webhook.timeoutSeconds ?? 10) * 1000
  let answer: unknown
  try {
    answer = await answerTo(hook, review, { clock, timeoutMs, signal: cancellation?.signal, headers: traceHeaders(tracer) })
  } catch (error) {
    const deprecated = deprecatedCertificate(error)
    if (deprecated) {
      metrics.deprecatedCertificate(deprecated)
      attributes.annotate?.(`${deprecated}.invalid-cert.kubernetes.io/${new URL(hook.target.url).hostname}`, reasons[deprecated])
    }
    const code = error instanceof HttpFault ? error.code : isStatus(error) ? error.code : 503
    throw new CallError(webhook.name, `failed to call webhook: ${(error as Error).message}`, code, cancellation?.aborted ?? false)
  }
  try {
    return verdictOf(answer, version, uid, mutating)
  } catch (error) {
    throw new CallError(webhook.name, `received invalid webhook response: ${(error as Error).message}`, 503)
  }
}

const reasons: Readonly<Record<DeprecatedCertificate, string>> = {
  'missing-san': 'relies on a legacy Common Name field instead of the SAN extension for subject validation',
  'insecure-sha1': 'uses an insecure SHA-1 signature',
}

/** Posts the review; if the webhook is a path of this server, in process with the server's own user. */
async function answerTo({ target, own }: Hook, review: string, options: PostOptions): Promise<unknown> {
  if (!own) return answerOf(await postText(target, review, { ...options, maxAnswerBytes }))
  const itself = own()
  if (!itself) throw new Error('the server does not serve yet')
  const { clock, timeoutMs, signal } = options
  using limit = deadlineScope({ clock, ms: timeoutMs }, signal)
  const query = { timeout: `${timeoutMs / 1000}s` }
  const path = new URL(target.url).pathname
  const request = { method: 'POST', path, query, body: review } as const
  return (await itself.request(request, limit.signal)).body
}

class HttpFault extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

function answerOf({ status, contentType, text }: WebhookAnswer): unknown {
  if (status >= 200 && status <= 206) return parseAnswer(text)
  const said = contentType.startsWith('text/') ? text.trim().slice(0, maxQuoted) : 'unknown'
  throw new HttpFault(status, httpFaults[status] ?? genericFault(status, said))
}

const maxQuoted = 2048

function genericFault(status: number, said: string): string {
  if (status === 403 || status === 415) return said
  return status >= 500
    ? `an error on the server (${JSON.stringify(said)}) has prevented the request from succeeding`
    : `the server responded with the status code ${status} but did not return more information`
}

/** Upstream: apimachinery/pkg/api/errors NewGenericServerResponse. */
const httpFaults: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  409: 'the server reported a conflict',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
}
