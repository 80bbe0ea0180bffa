/**
 * The settings of authentication (L3), after kube-apiserver's flags and their defaults. The composition root reads flags and files.
 * Upstream: pkg/kubeapiserver/options/authentication.go, apiserver/pkg/server/options/authentication.go (v1.36).
 */
import type { JwtSettings } from './oidc/reloadingAuthenticators.ts'
import type { StaticTokens } from './tokenFile.ts'
import type { WebhookTokenSettings } from './webhookToken.ts'

/** Names of headers in lower case. */
export interface RequestHeaderSettings {
  /** Allowed common names of front proxies; empty: any certificate of their authority. */
  readonly allowedNames: readonly string[]
  readonly usernameHeaders: readonly string[]
  readonly uidHeaders: readonly string[]
  readonly groupHeaders: readonly string[]
  readonly extraHeaderPrefixes: readonly string[]
}

export interface ServiceAccountSettings {
  /** The first one issues; all are accepted. Never empty. */
  readonly issuers: readonly string[]
  /** PEM of the key that signs (--service-account-signing-key-file); absent: the composition root's key. */
  readonly signingKey?: string | undefined
  /** PEM of all keys that verify (--service-account-key-file); absent: only the signing key. */
  readonly keys?: readonly string[] | undefined
  /** For legacy tokens: the secret must exist. */
  readonly lookup: boolean
  /** Longer requests are shortened to this; absent: no bound. */
  readonly maxExpirationSeconds?: number | undefined
  /** Tokens that the kubelet injects are valid for a year, and give warnings after the requested time. */
  readonly extendExpiration: boolean
  /** Where the key set is served, as clients outside reach it; absent: below the issuer. */
  readonly jwksUri?: string | undefined
}

export interface AuthenticationSettings {
  /** Absent or empty: the issuers of service account tokens. */
  readonly apiAudiences?: readonly string[] | undefined
  /** Absent: anonymous requests are refused. No paths: they are allowed on all paths. */
  readonly anonymous?: { readonly paths: readonly string[] } | undefined
  readonly bootstrapTokens: boolean
  /** Absent: no front proxy is trusted. */
  readonly requestHeader?: RequestHeaderSettings | undefined
  readonly serviceAccounts: ServiceAccountSettings
  readonly tokenFile?: StaticTokens | undefined
  /** Issuers of ID tokens; absent: none. */
  readonly jwt?: JwtSettings | undefined
  /** Absent: no webhook. */
  readonly webhook?: WebhookTokenSettings | undefined
}

export const defaultIssuer = 'https://kubernetes.default.svc.cluster.local'

export const standardRequestHeaders = {
  usernameHeaders: ['X-Remote-User'],
  uidHeaders: ['X-Remote-Uid'],
  groupHeaders: ['X-Remote-Group'],
  extraHeaderPrefixes: ['X-Remote-Extra-'],
} as const

/** The settings of a server without flags, plus bootstrap tokens, with which nodes join a local cluster. */
export const defaultAuthentication: AuthenticationSettings = {
  anonymous: { paths: [] },
  bootstrapTokens: true,
  serviceAccounts: { issuers: [defaultIssuer], lookup: true, extendExpiration: true },
}
