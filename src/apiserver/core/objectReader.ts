/**
 * Read access to the API server's own objects (L3): authenticators, authorizers, admission plugins and policies look objects up in the watch cache,
 * by reference, and learn in which versions a resource exists.
 */
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
import type { Schema } from '#api/schema/schema'
import type { Cancellation } from './cancellation.ts'

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
  /** JSON as an object of a version, with its defaults; unknown fields are dropped. Takes ownership of the value. @throws StatusError */
  decode(value: unknown, apiVersion: string): KubeObject
  /** Paths of fields that the version does not have. @throws StatusError when a value does not have its field's type */
  unknownFields(value: unknown, apiVersion: string): readonly string[]
  /** The schema of a version. */
  schemaOf(apiVersion: string): Schema | undefined
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
  /** The resource of a kind. Absent: this reader cannot look up kinds. */
  ofKind?(apiVersion: string, kind: string): KnownKind | undefined
  /** Calls back for every change after the call, synchronously with the cache; returns a function that stops it. */
  onChange<T extends KubeObject>(
    resource: { readonly group: string; readonly resource: string },
    fn: (change: { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Frozen<T>; readonly old?: Frozen<T> | undefined }) => void,
  ): () => void
}
