/**
 * AdmissionReview (L3): what a webhook is asked, and whether its answer counts.
 * Upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go (v1.36).
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { withNils } from '#api/schema/nils'
import type { AdmissionAttributes } from '../admission.ts'
import { admissionRequest } from '../cel/activation.ts'
import type { Invocation } from '../matching/rules.ts'
import type { WebhookResult } from './outcome.ts'

const reviewVersions: ReadonlySet<string> = new Set(['v1', 'v1beta1'])

/** The version that is spoken with a webhook: the first of its that is known. */
export function reviewVersionOf(accepted: readonly string[]): string | undefined {
  return accepted.find((version) => reviewVersions.has(version))
}

/** Objects as JSON, made once for all webhooks that see them. */
export class ObjectTexts {
  readonly #texts = new WeakMap<object, string>()

  of(object: Frozen<KubeObject> | undefined): string {
    if (!object) return 'null'
    const known = this.#texts.get(object)
    if (known !== undefined) return known
    const text = stringifyExactly(withNils(object))
    this.#texts.set(object, text)
    return text
  }
}

/** The review as JSON. @param objects as JSON */
export function reviewText(
  version: string,
  uid: string,
  attributes: AdmissionAttributes,
  invocation: Invocation,
  objects: Readonly<Record<'object' | 'oldObject', string>>,
): string {
  const members = Object.entries(admissionRequest(uid, attributes, invocation, {})).map(([name, value]) => {
    const text = name === 'object' || name === 'oldObject' ? objects[name] : stringifyExactly(value)
    return text === undefined ? '' : `${JSON.stringify(name)}:${text}`
  })
  return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/${version}","request":{${members.filter((member) => member !== '').join(',')}}}`
}

export interface Verdict {
  readonly allowed: boolean
  readonly result: WebhookResult | null | undefined
  /** The patch's text; '' for none. */
  readonly patch: string
  readonly patchType: string
  readonly auditAnnotations: Readonly<Record<string, string>>
  readonly warnings: readonly string[]
}

interface Review {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly response?: Response | null | undefined
}

interface Response {
  readonly uid?: string | undefined
  readonly allowed?: boolean | undefined
  readonly status?: WebhookResult | null | undefined
  readonly patch?: string | null | undefined
  readonly patchType?: string | null | undefined
  readonly auditAnnotations?: Record<string, string> | null | undefined
  readonly warnings?: string[] | null | undefined
}

/** @throws Error in upstream's words for an answer that does not count */
export function verdictOf(answer: unknown, version: string, uid: string, mutating: boolean): Verdict {
  const { response, apiVersion = '', kind = '' } = checkedReview(answer)
  if (!response) throw new Error('webhook response was absent')
  const patch = response.patch ? Buffer.from(response.patch, 'base64').toString('utf8') : ''
  // Upstream never checks the identity or the type of the patch in the older version.
  if (version === 'v1') {
    if ((response.uid ?? '') !== uid) throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid ?? '')}`)
    checkIdentity(apiVersion, kind)
    checkPatch(patch, response.patchType, mutating)
  }
  const patchType = version === 'v1' ? (response.patchType ?? '') : patch === '' ? '' : 'JSONPatch'
  return {
    allowed: response.allowed ?? false,
    result: response.status,
    patch: mutating ? patch : '',
    patchType,
    auditAnnotations: response.auditAnnotations ?? {},
    warnings: response.warnings ?? [],
  }
}

function checkIdentity(apiVersion: string, kind: string): void {
  if (apiVersion === 'admission.k8s.io/v1' && kind === 'AdmissionReview') return
  const { group, version } = parseGroupVersion(apiVersion)
  throw new Error(`expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${group}/${version}, Kind=${kind}`)
}

function checkPatch(patch: string, patchType: string | null | undefined, mutating: boolean): void {
  const hasType = patchType !== undefined && patchType !== null
  if (!mutating) {
    if (patch !== '') throw new Error('validating webhook may not return response.patch')
    if (hasType) throw new Error('validating webhook may not return response.patchType')
    return
  }
  if (patch !== '' && !hasType) throw new Error('webhook returned response.patch but not response.patchType')
  if (patch === '' && hasType) throw new Error('webhook returned response.patchType but not response.patch')
  if (hasType && patchType === '') throw new Error('webhook returned invalid response.patchType of ""')
}

/** Go's decoder looks at the types of all fields before anything else. */
function checkedReview(answer: unknown): Review {
  const review = fieldsOf(answer, 'AdmissionReview', { apiVersion: 'string', kind: 'string', response: 'object' })
  if (review.response) {
    const types = { uid: 'string', allowed: 'bool', status: 'object', patch: 'string', patchType: 'string', auditAnnotations: 'object', warnings: 'array' }
    fieldsOf(review.response, 'AdmissionReview.response', types)
  }
  return review as Review
}

function fieldsOf(value: unknown, what: string, types: Readonly<Record<string, string>>): Record<string, unknown> {
  if (goTypeOf(value) !== 'object') throw new Error(`json: cannot unmarshal ${goTypeOf(value)} into Go value of type ${what}`)
  const fields = value as Record<string, unknown>
  for (const [name, type] of Object.entries(types)) {
    const got = fields[name]
    if (got === undefined || got === null || goTypeOf(got) === type) continue
    throw new Error(`json: cannot unmarshal ${goTypeOf(got)} into Go struct field ${what}.${name} of type ${type}`)
  }
  return fields
}

function goTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}
