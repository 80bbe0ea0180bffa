/**
 * Collects what the audit log records of one request (L3): handlers add the object and annotations; each stage becomes an event.
 * Upstream: apiserver/pkg/audit context.go and request.go.
 */
import { formatDuration } from '#api/machinery/duration'
import type { KubeObject } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import type { Answer } from '../core/answer.ts'
import { type LatencyLayer, type RequestAudit, type RequestBody, requestUri, type ServerRequest } from '../core/request.ts'
import { objectText, patchText, responseText } from './bodies.ts'
import { AuditEvent, type AuditRule, type AuditStageName, ObjectReference, RequestFacts, type ResponseStatus } from './event.ts'
import type { AuditTexts } from './texts.ts'

const longestUserAgent = 1024
/** Slower requests are annotated. */
const slowMs = 500
/** Layers that a request may enter several times at once: the longest time counts. Upstream: newMaxLatencyTracker. */
const longestCounts: ReadonlySet<LatencyLayer> = new Set(['apf-queue-wait', 'authorization', 'validating-webhook'])

export class AuditRecord implements RequestAudit {
  readonly rule: AuditRule
  readonly #request: ServerRequest
  readonly #facts: RequestFacts
  #objectRef: ObjectReference | undefined
  #requestObject: string | undefined
  #annotations: Record<string, string> | undefined
  /** True when an event refers to the annotations: the next change copies them. */
  #areShared = false
  #spentMs: Partial<Record<LatencyLayer, number>> | undefined

  constructor(request: ServerRequest, rule: AuditRule, texts: AuditTexts) {
    this.rule = rule
    this.#request = request
    this.#facts = new RequestFacts({
      level: rule.level,
      auditID: request.auditId ?? '',
      requestURI: requestUri(request),
      verb: request.info?.verb ?? '',
      user: request.originalUser,
      texts,
      origin: texts.origin(request),
      userAgent: userAgentOf(request),
      receivedMs: request.receivedMs,
    })
    this.#objectRef = referenceOf(request)
    if (request.authenticationMs !== undefined) this.spent('authentication', request.authenticationMs)
  }

  annotate(key: string, value: string): void {
    if (this.#annotations?.[key] !== undefined) return
    if (this.#areShared) this.#annotations = { ...this.#annotations }
    this.#areShared = false
    this.#annotations ??= {}
    this.#annotations[key] = value
  }

  spent(on: LatencyLayer, ms: number): void {
    this.#spentMs ??= {}
    const before = this.#spentMs[on] ?? 0
    this.#spentMs[on] = longestCounts.has(on) ? Math.max(before, ms) : before + ms
  }

  requestObject(object: object): void {
    const { metadata } = object as Partial<KubeObject>
    const ref = this.#objectRef
    if (ref && metadata) {
      const { namespace, name, uid, resourceVersion } = metadata
      const known = ref.fields
      this.#objectRef = new ObjectReference({ ...known, namespace: known.namespace || namespace, name: known.name || name, uid, resourceVersion })
    }
    if (this.rule.level !== 'Metadata') this.#requestObject = objectText(object, this.rule.omitManagedFields)
  }

  requestPatch(body: RequestBody): void {
    if (this.rule.level !== 'Metadata') this.#requestObject = patchText(body)
  }

  /** Annotates the last event of a request for a deprecated resource. */
  noteDeprecation(): void {
    if (this.#request.deprecated) this.annotate('k8s.io/deprecated', 'true')
  }

  /** Annotates a slow request with the durations of its parts, as upstream does for operators. */
  noteLatency(nowMs: number): void {
    const tookMs = nowMs - this.#request.receivedMs
    if (tookMs <= slowMs || this.#request.info?.verb === 'watch') return
    const note = (what: string, ms: number) => this.annotate(`apiserver.latency.k8s.io/${what}`, formatDuration(ms))
    note('total', tookMs)
    for (const [layer, ms] of Object.entries(this.#spentMs ?? {})) if (ms > 0) note(layer, ms)
  }

  /** Undefined: the policy omits this stage. */
  event(stage: AuditStageName, stageMs: number, responseStatus?: ResponseStatus, answer?: Answer): AuditEvent | undefined {
    const { rule } = this
    if (rule.omitStages.has(stage)) return undefined
    const request = this.#request
    const { originalUser, user } = request
    return new AuditEvent({
      request: this.#facts,
      stage,
      impersonatedUser: user && user !== originalUser ? user : undefined,
      impersonationConstraint: request.impersonationConstraint,
      objectRef: this.#objectRef,
      responseStatus,
      requestObject: this.#requestObject,
      responseObject: answer && rule.level === 'RequestResponse' ? () => responseText(answer, rule.omitManagedFields) : undefined,
      stageMs,
      annotations: this.#allAnnotations(),
    })
  }

  #allAnnotations(): Readonly<Record<string, string>> | undefined {
    const { auditAnnotations, admissionAnnotations } = this.#request
    if (!auditAnnotations && !admissionAnnotations?.length) {
      if (!this.#annotations) return undefined
      this.#areShared = true
      return sorted(this.#annotations)
    }
    const all: Record<string, string> = bareMap({ ...this.#annotations, ...auditAnnotations })
    for (const { key, value, level } of admissionAnnotations ?? []) if (level === 'Metadata' || this.rule.level !== 'Metadata') all[key] ??= value
    return Object.keys(all).length > 0 ? sorted(all) : undefined
  }
}

function sorted(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  let before = ''
  for (const key in annotations) {
    if (key < before) return Object.fromEntries(Object.entries(annotations).sort(([a], [b]) => (a < b ? -1 : 1)))
    before = key
  }
  return annotations
}

function referenceOf({ info }: ServerRequest): ObjectReference | undefined {
  if (!info?.isResourceRequest) return undefined
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = info
  return new ObjectReference({ resource, namespace, name, apiGroup, apiVersion, subresource })
}

function userAgentOf({ headers }: ServerRequest): string | undefined {
  const agent = headers['user-agent']
  if (typeof agent !== 'string' || agent === '') return undefined
  return agent.length > longestUserAgent ? `${agent.slice(0, longestUserAgent)}...TRUNCATED` : agent
}
