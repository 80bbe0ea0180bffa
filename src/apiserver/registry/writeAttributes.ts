/**
 * The attributes of a write that admission plugins see (L3). Most plugins look at a few of them, so the others are made on demand.
 * Upstream: apiserver/pkg/admission/attributes.go.
 */
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
import type { RequestTracer } from '#trace/requestTracer'
import type { AdmissionAttributes, AdmissionOperation, Reinvocation } from '../admission/admission.ts'
import type { Cancellation } from '../core/cancellation.ts'
import type { AdmissionForms } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { ServedResource, WriteContext } from './storedResource.ts'

/** The context of a write for admission, also for resources that are not stored. */
export interface AdmissionContext extends Omit<WriteContext, 'served' | 'fieldManager'> {
  readonly served: GroupVersionResource & GroupVersionKind & { readonly stored: Pick<ServedResource['stored'], 'forms'> }
}

interface Subject {
  readonly name: string
  readonly object: KubeObject | undefined
  readonly oldObject: Frozen<KubeObject> | undefined
  /** Options that differ from the query's. */
  readonly options: Readonly<Record<string, unknown>> | undefined
}

export class WriteAttributes implements AdmissionAttributes {
  readonly operation: AdmissionOperation
  readonly name: string
  readonly object: KubeObject | undefined
  readonly oldObject: Frozen<KubeObject> | undefined
  reinvocation: Reinvocation | undefined
  readonly #context: AdmissionContext
  readonly #options: Readonly<Record<string, unknown>> | undefined

  constructor(context: AdmissionContext, operation: AdmissionOperation, { name, object, oldObject, options }: Subject) {
    this.operation = operation
    this.name = name
    this.object = object
    this.oldObject = oldObject
    this.reinvocation = undefined
    this.#context = context
    this.#options = options
  }

  get resource(): GroupVersionResource {
    return this.#context.served
  }
  get kind(): GroupVersionKind {
    return this.#context.kind ?? this.#context.served
  }
  get subresource(): string {
    return this.#context.subresource
  }
  get namespace(): string {
    return this.#context.namespace
  }
  get user(): UserInfo {
    return this.#context.user
  }
  get dryRun(): boolean {
    return this.#context.dryRun
  }
  get cancellation(): Cancellation | undefined {
    return this.#context.cancellation
  }
  get trace(): RequestTracer | undefined {
    return this.#context.request?.trace
  }
  get forms(): AdmissionForms | undefined {
    return this.#context.kind ? undefined : this.#context.served.stored.forms
  }
  /** The request's CreateOptions, UpdateOptions or DeleteOptions, as upstream passes them. */
  get options(): Readonly<Record<string, unknown>> | undefined {
    const kind = optionKinds[this.operation]
    return kind === undefined ? undefined : { ...(this.#options ?? this.#queryOptions()), kind, apiVersion: 'meta.k8s.io/v1' }
  }

  warn(text: string): void {
    this.#context.warn(text)
  }

  annotate(key: string, value: string, level: 'Metadata' | 'Request' = 'Metadata'): void {
    this.#context.request?.admissionAnnotations?.push({ key, value, level })
  }

  refusedBy(plugin: string): void {
    if (this.#context.request) this.#context.request.refusedBy = plugin
  }

  spent(on: 'mutating-webhook' | 'validating-webhook', ms: number): void {
    const { request } = this.#context
    if (!request) return
    request.excludedMs = (request.excludedMs ?? 0) + ms
    request.audit?.spent(on, ms)
  }

  #queryOptions(): Record<string, unknown> {
    const query = this.#context.request?.query
    const fieldManager = query?.get('fieldManager')
    const fieldValidation = query?.get('fieldValidation')
    return {
      ...(this.#context.dryRun ? { dryRun: ['All'] } : {}),
      ...(fieldManager ? { fieldManager } : {}),
      ...(fieldValidation ? { fieldValidation } : {}),
    }
  }
}

const optionKinds: Readonly<Record<AdmissionOperation, string | undefined>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
  CONNECT: undefined,
}
