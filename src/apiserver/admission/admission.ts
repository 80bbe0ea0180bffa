/** Admission's contract (L3): mutating plugins run in order, then the registry validates, then validating plugins run. */
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
import type { Schema } from '#api/schema/schema'
import type { Cancellation } from '../cancellation.ts'
import type { UserInfo } from '../request.ts'

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
  /** Noted in the audit log; absent: nobody writes one. Level Request: only where the log has the request's body, too. */
  annotate?(key: string, value: string, level?: 'Metadata' | 'Request'): void
  /** Some of the request's time went into this; absent: nobody wants to know. */
  spent?(on: 'mutating-webhook' | 'validating-webhook', ms: number): void
  /** The resource's versions and the way between them; absent for what is not stored. */
  readonly forms?: AdmissionForms | undefined
  readonly cancellation?: Cancellation | undefined
  /** Made by the first plugin that asks for a second round of the mutating ones. */
  reinvocation?: Reinvocation | undefined
}

/** One version of a resource under admission. */
export interface AdmissionForm {
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
  /** Group and version in one. */
  readonly apiVersion: string
}

/** How a resource looks in each of its versions. Upstream: ObjectInterfaces with its EquivalentResourceMapper. */
export interface AdmissionForms {
  readonly all: readonly AdmissionForm[]
  /** The object as a version shows it: itself when it has that version already, else a copy. */
  show(object: Frozen<KubeObject>, apiVersion: string, cancellation?: Cancellation): Promise<Frozen<KubeObject>> | Frozen<KubeObject>
  /** JSON as an object of a version, with its defaults; unknown fields vanish. Takes the value over. @throws StatusError */
  decode(value: unknown, apiVersion: string): KubeObject
  /** Where JSON has fields that a version does not know. @throws StatusError when a value has not its field's type */
  unknownFields(value: unknown, apiVersion: string): readonly string[]
  /** What the fields of a version mean. */
  schemaOf(apiVersion: string): Schema | undefined
}

/** Whether the mutating plugins run once more, and which of their parts. Upstream: admission.ReinvocationContext. */
export interface Reinvocation {
  /** Somebody changed the object in the first round. */
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

/** A stored resource, found by its kind. */
export interface KnownKind {
  readonly group: string
  readonly resource: string
  readonly namespaced: boolean
  readonly forms: AdmissionForms | undefined
}

/** What plugins may read: the API server's own cache, by reference. */
export interface ObjectReader {
  get<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace: string, name: string): Frozen<T> | undefined
  list<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace?: string): readonly Frozen<T>[]
  /** The resource whose objects say that they are of a kind. Absent: this reader knows no kinds. */
  ofKind?(apiVersion: string, kind: string): KnownKind | undefined
  /** Calls back for every change after the call, synchronously with the cache; returns the way to stop. */
  onChange<T extends KubeObject>(
    resource: { readonly group: string; readonly resource: string },
    fn: (change: { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Frozen<T>; readonly old?: Frozen<T> | undefined }) => void,
  ): () => void
}
