/**
 * Resources that are computed, not stored (L3): the access reviews, TokenReview, and the token subresource of service accounts.
 * The endpoint decodes, defaults, authorizes and admits as for any create; the resource computes the answer.
 * Upstream: rest.Creater implementations without a store, such as pkg/registry/authorization/subjectaccessreview.
 */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { UserInfo } from './request.ts'

export interface VirtualRequest<T extends KubeObject = KubeObject> {
  /** Decoded and defaulted; the implementation may change and return it. */
  readonly object: T
  readonly user: UserInfo
  /** From the path; empty for cluster-scoped resources. */
  readonly namespace: string
  readonly signal: AbortSignal
}

/** A create-only resource. Refusals are thrown StatusErrors. The answer goes out with code 201. */
export interface VirtualResource<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly version: string
  /** Plural, e.g. `subjectaccessreviews`. */
  readonly resource: string
  create(request: VirtualRequest<T>): Promise<T> | T
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
