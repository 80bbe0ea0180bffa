/**
 * The contents of a kind's own file (L1): only what OpenAPI cannot express. Names, versions, verbs, scope, short names, categories and shapes come
 * from gen/; a kind without a file is served by the generic rules alone.
 * The registry runs the members in one fixed order, which is upstream's (pkg/registry/rest/create.go, update.go):
 * decode + defaults → managed fields → mutating admission → prepareForCreate|Update → validate|validateUpdate → warnings →
 * canonicalize → validating admission → store. All are pure; only `defaults`, `prepare…` and `canonicalize` may change the object.
 */
import type { FieldError, FieldPath } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Random } from '#base/random'

/** The user that makes a request. */
export interface StrategyUser {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** What strategies may ask of the world: nothing but the time, chance, who asks and what the object's namespace is called to be. */
export interface StrategyContext {
  readonly nowMs: number
  readonly random: Random
  /** Values of --feature-gates; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
  /** The caller; absent when the registry itself writes. */
  readonly user?: StrategyUser | undefined
  /** The labels of the object's namespace; undefined when there is no such namespace. Absent: the labels cannot be looked up. */
  readonly namespaceLabels?: (() => Readonly<Record<string, string>> | undefined) | undefined
  /** Sends a warning to the client, whether the write succeeds or not. Absent: there is no client. */
  readonly warn?: ((text: string) => void) | undefined
}

export interface CreateInput<T> {
  readonly obj: T
  readonly path: FieldPath
  readonly context: StrategyContext
}

export interface UpdateInput<T> extends CreateInput<T> {
  readonly old: Frozen<T>
}

/** One column of `kubectl get`. Cells of priority > 0 show with -o wide. */
export interface Column<T> {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  /** OpenAPI's: 'name' marks the object's name. */
  readonly format?: string | undefined
  readonly priority?: number | undefined
  readonly description?: string | undefined
  /** The cell. Type date: return the RFC 3339 time; the table prints the age upstream's way. Null shows as an empty cell. */
  readonly value: (obj: Frozen<T>, nowMs: number) => string | number | bigint | boolean | undefined | null
}

/** Rules of a subresource that is a view of the same object: status, approval, resize, ephemeralcontainers, finalize. */
export interface SubresourceStrategy<T> {
  prepareForUpdate?(input: UpdateInput<T>): void
  validateUpdate?(input: UpdateInput<T>): readonly FieldError[]
  /** Field paths (dotted) that this endpoint never lets anyone own through server-side apply. */
  readonly resetFields?: readonly string[] | undefined
  /** False: writes through it never raise metadata.generation. */
  readonly generation?: false | undefined
}

export interface KindStrategy<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly kind: string
  /** PUT and apply may create (upstream AllowCreateOnUpdate). Default false. */
  readonly allowCreateOnUpdate?: boolean | undefined
  /** PUT without a resourceVersion is allowed (upstream AllowUnconditionalUpdate). Default true, as most of upstream's. */
  readonly allowUnconditionalUpdate?: boolean | undefined
  /** Dotted field paths that no manager can own through the main endpoint. Default: the status, if the kind has a status subresource. */
  readonly resetFields?: readonly string[] | undefined
  /** The printer columns after upstream's printers/internalversion; absent: Name and Age. */
  readonly columns?: readonly Column<T>[] | undefined
  /** Computed defaults of one version; constants come from the schema. `version` is the version of the request. */
  defaults?(obj: T, version: string): void
  /** Some of these defaults bring what is outside of the spec out of the spec: a write of the status needs the spec for them. */
  readonly defaultsReadSpec?: boolean | undefined
  /** To and from the storage version, when versions differ in shape; absent: shapes are equal. */
  convert?(obj: T, from: string, to: string): T
  /**
   * The kind differs in shape from the stored one, and its rules work on its own shape (Event of events.k8s.io, stored as core/v1).
   * Absent: its rules work on the stored shape.
   */
  readonly ownShape?: { fromStored(obj: Frozen<KubeObject>): KubeObject; toStored(obj: Frozen<KubeObject>): KubeObject } | undefined
  prepareForCreate?(input: CreateInput<T>): void
  prepareForUpdate?(input: UpdateInput<T>): void
  validate?(input: CreateInput<T>): readonly FieldError[]
  /** Runs after the generic metadata checks; must itself call what `validate` checks when that applies to updates too. */
  validateUpdate?(input: UpdateInput<T>): readonly FieldError[]
  warnings?(input: CreateInput<T>, old?: Frozen<T>): readonly string[]
  canonicalize?(obj: T): void
  /** metadata.name's form; absent: DNS-1123 subdomain. Returns upstream's message per fault. */
  validateName?(name: string, prefix: boolean): readonly string[]
  /** Field selectors beyond metadata.name and metadata.namespace: label → value of an object. */
  readonly selectableFields?: Readonly<Record<string, (obj: Frozen<T>) => string>> | undefined
  /** False: field selectors of this namespaced kind do not know metadata.namespace. */
  readonly selectsNamespace?: boolean | undefined
  /** Selectable fields of which the watch cache keeps an index, so that a change is matched only with watches of its values. Upstream: TriggerFunc. */
  readonly triggerFields?: readonly string[] | undefined
  readonly status?: SubresourceStrategy<T> | undefined
  /** Other object-shaped subresources by name. */
  readonly subresources?: Readonly<Record<string, SubresourceStrategy<T>>> | undefined
  /** Where `scale` reads and writes: absent kinds have no scale. */
  readonly scale?:
    | {
        readonly replicas: string
        readonly statusReplicas: string
        readonly selector: (obj: Frozen<T>) => string
        /** An object without the replicas field has no scale (custom resources). */
        readonly required?: boolean | undefined
      }
    | undefined
  /** Graceful deletion: the grace period in seconds that a delete without one gets; absent: immediate. */
  readonly deletion?: { gracePeriodSeconds(obj: Frozen<T>, requested: number | undefined): number } | undefined
  /** spec is what generation counts; absent: everything but metadata and status. False: no generation at all. */
  readonly generation?: boolean | undefined
  /** Custom resources without a status subresource: their status is content like any other. */
  readonly generationCountsStatus?: boolean | undefined
  /** A change of labels raises the generation, too (EndpointSlice, whose labels name its Service). */
  readonly generationCountsLabels?: boolean | undefined
  /** Changes an object that is about to be marked as deleted, the first time: finalizers, conditions. */
  prepareForDelete?(obj: T, nowMs: number): void
  /** A deletion that takes more than the finalizers of the metadata (Namespace). */
  readonly termination?:
    | {
        /** Whether finalizers outside the metadata keep a deleted object. */
        isHeld(obj: Frozen<T>): boolean
        /** Makes the status show the deletion. Returns false when it shows it already. */
        show(obj: T): boolean
      }
    | undefined
  /** Default garbage-collection policy of a delete that names none; absent: 'background'. */
  readonly defaultPropagation?: 'background' | 'orphan' | undefined
}

/** Types a kind's file; adds nothing. */
export function defineKind<T extends KubeObject>(strategy: KindStrategy<T>): KindStrategy<T> {
  return strategy
}
