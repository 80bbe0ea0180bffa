/** Admission's contract (L3): mutating plugins run in order, then the registry validates, then validating plugins run. */
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
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
}

/** One plugin per file under plugins/; the ordered chain is plugins/index.ts. A refusal is a thrown StatusError, usually Forbidden. */
export interface AdmissionPlugin {
  readonly name: string
  handles(operation: AdmissionOperation): boolean
  admit?(attributes: AdmissionAttributes): Promise<void> | void
  validate?(attributes: AdmissionAttributes): Promise<void> | void
}

/** What plugins may read: the API server's own cache, by reference. */
export interface ObjectReader {
  get<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace: string, name: string): Frozen<T> | undefined
  list<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace?: string): readonly Frozen<T>[]
  /** Calls back for every change after the call, synchronously with the cache; returns the way to stop. */
  onChange<T extends KubeObject>(
    resource: { readonly group: string; readonly resource: string },
    fn: (change: { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Frozen<T>; readonly old?: Frozen<T> | undefined }) => void,
  ): () => void
}
