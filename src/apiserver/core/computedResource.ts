/**
 * Resources that are computed, not stored (L3): access reviews, TokenReview, component statuses, and whole groups that other components of the process
 * compute, such as metrics.k8s.io. An implementation answers get, list or create; endpoints/computedHandlers.ts decodes, admits, selects and encodes.
 * Upstream: rest.Creater, rest.Getter and rest.Lister implementations without a store, such as pkg/registry/core/componentstatus.
 */
import type { ResourceFacts } from '#api/discovery/resources'
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { Column } from '#api/kinds/defineKind'
import type { Frozen, KubeObject, ObjectMeta } from '#api/machinery/meta'
import type { Schema } from '#api/schema/schema'
import type { UserInfo } from './request.ts'

export interface ComputedRequest {
  readonly user: UserInfo
  /** From the path; empty for cluster-scoped resources, and for lists across namespaces. */
  readonly namespace: string
  readonly signal: AbortSignal
}

export interface ComputedGet extends ComputedRequest {
  readonly name: string
  /** Parameters of the request's URL; the resource takes those that it documents. Absent: none. */
  readonly query?: URLSearchParams | undefined
}

export interface ComputedList extends ComputedRequest {
  /** Whether the request's selectors match this metadata. The endpoint checks each answered object, too: asking earlier saves computing it. */
  selects(metadata: Frozen<ObjectMeta>): boolean
}

export interface ComputedCreate<T extends KubeObject = KubeObject> extends ComputedRequest {
  /** Decoded and defaulted; the implementation may change and return it. */
  readonly object: T
}

/** Verbs without a function are refused. Refusals are thrown StatusErrors. */
export interface ComputedResource<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly version: string
  /** Plural, e.g. `subjectaccessreviews`. */
  readonly resource: string
  /** @throws NotFound */
  get?(request: ComputedGet): Promise<T> | T
  /** The objects in the order of the answer. */
  list?(request: ComputedList): Promise<readonly T[]> | readonly T[]
  /** The answer goes out with code 201. */
  create?(request: ComputedCreate<T>): Promise<T> | T
}

/** The kind of a computed resource. */
export interface ComputedKind {
  readonly facts: ResourceFacts
  /** With field numbers for protobuf. The definition's name is part of the OpenAPI documents. */
  readonly schema: Schema
  readonly columns: readonly Column<KubeObject>[]
}

/** A kind that is no part of Kubernetes' own API: its documents are made from this. */
export interface DescribedKind extends ComputedKind {
  readonly listKind: string
  readonly listSchema: Schema
  /** Descriptions for the OpenAPI documents: the kind's under '', its fields' under their names. */
  readonly texts: Readonly<Record<string, string>>
  /** Definitions that the kind's schema refers to and that no built-in kind has. */
  readonly parts?: readonly { readonly schema: Schema; readonly texts: Readonly<Record<string, string>> }[] | undefined
}

/** A group-version that a component of this process computes. */
export interface ComputedGroup {
  readonly group: string
  readonly version: string
  /** The priorities of its APIService, which is created when this group-version is first offered to a cluster. */
  readonly priorities: { readonly groupPriorityMinimum: number; readonly versionPriority: number }
  readonly resources: readonly (DescribedKind & Pick<ComputedResource, 'get' | 'list'>)[]
}

/** serviceaccounts/token. `name` and `namespace` are the service account's; it exists when this is called. */
export interface TokenIssuer {
  issue(request: {
    readonly namespace: string
    readonly name: string
    readonly serviceAccountUid: string
    readonly tokenRequest: TokenRequest
    readonly user: UserInfo
    readonly dryRun: boolean
    /** Adds a warning to the answer. */
    warn(text: string): void
    /** Adds an annotation to the audit event. */
    annotate(key: string, value: string): void
  }): Promise<TokenRequest> | TokenRequest
}
