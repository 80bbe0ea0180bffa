/** Admission's contract (L3): mutating plugins run in order, then the registry validates, then validating plugins run. */
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
import type { RequestTracer } from '#trace/requestTracer'
import type { Cancellation } from '../core/cancellation.ts'
import type { AdmissionForms } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

export interface AdmissionAttributes {
  readonly operation: AdmissionOperation
  readonly resource: GroupVersionResource
  readonly subresource: string
  readonly kind: GroupVersionKind
  readonly namespace: string
  readonly name: string
  /** Mutable for mutating plugins; absent on DELETE. For CONNECT, the options object. */
  readonly object?: KubeObject | undefined
  readonly oldObject?: Frozen<KubeObject> | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
  readonly user: UserInfo
  readonly dryRun: boolean
  /** Shown to the client as a Warning header. */
  warn(text: string): void
  /** Adds an annotation to the audit event; absent: there is no audit log. Level Request: only if the event has the request's body, too. */
  annotate?(key: string, value: string, level?: 'Metadata' | 'Request'): void
  /** Adds to the request's time that went into webhooks; absent: the time is not recorded. */
  spent?(on: 'mutating-webhook' | 'validating-webhook', ms: number): void
  /** Records what plugins change. Absent: the request has no reader. */
  readonly trace?: RequestTracer | undefined
  /** Notes which plugin refuses. */
  refusedBy?(plugin: string): void
  /** The resource's versions and the conversion between them; absent for resources that are not stored. */
  readonly forms?: AdmissionForms | undefined
  readonly cancellation?: Cancellation | undefined
  /** Created by the first plugin that requests a second round of mutating plugins. */
  reinvocation?: Reinvocation | undefined
}

/** State of the second round of mutating plugins. Upstream: admission.ReinvocationContext. */
export interface Reinvocation {
  /** A later plugin changed the object in the first round. */
  wanted: boolean
  /** This is the second round. */
  isSecondRound: boolean
  /** What plugins keep between the rounds, by their names. */
  readonly kept: Map<string, unknown>
}

/** One plugin per file under plugins/; the ordered chain is plugins/index.ts. A refusal is a thrown StatusError, usually Forbidden. */
export interface AdmissionPlugin {
  readonly name: string
  handles(operation: AdmissionOperation): boolean
  admit?(attributes: AdmissionAttributes): Promise<void> | void
  validate?(attributes: AdmissionAttributes): Promise<void> | void
}
