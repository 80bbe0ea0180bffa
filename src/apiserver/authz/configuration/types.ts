/**
 * The type AuthorizationConfiguration and its decoding (L3). All versions that upstream still reads have these fields.
 * Upstream: apiserver/pkg/apis/apiserver/{v1,v1beta1,v1alpha1}/{types,defaults}.go (v1.36).
 */
import { type ConfigurationKind, decodeConfiguration } from '#api/configuration/decode'
import { boolean, kind, list, struct, text } from '#api/configuration/schemas'
import { parseDuration } from '#api/machinery/duration'

export interface AuthorizationConfiguration {
  readonly authorizers: readonly AuthorizerConfiguration[]
}

export interface AuthorizerConfiguration {
  readonly type: string
  readonly name: string
  readonly webhook?: WebhookConfiguration | undefined
}

export interface WebhookConfiguration {
  readonly authorizedTtlMs: number
  readonly cacheAuthorizedRequests: boolean
  readonly unauthorizedTtlMs: number
  readonly cacheUnauthorizedRequests: boolean
  /** 0: not given. */
  readonly timeoutMs: number
  readonly subjectAccessReviewVersion: string
  readonly matchConditionSubjectAccessReviewVersion: string
  readonly failurePolicy: string
  readonly connectionInfo: { readonly type: string; readonly kubeConfigFile?: string | undefined }
  readonly matchConditions: readonly { readonly expression: string }[]
}

/** Types of authorizers, by upstream's names. */
export const authorizationModes = ['AlwaysAllow', 'AlwaysDeny', 'ABAC', 'Webhook', 'RBAC', 'Node'] as const
export type AuthorizationMode = (typeof authorizationModes)[number]

const configurationKind: ConfigurationKind = {
  kind: 'AuthorizationConfiguration',
  apiVersions: ['apiserver.config.k8s.io/v1', 'apiserver.config.k8s.io/v1beta1', 'apiserver.config.k8s.io/v1alpha1'],
  schema: kind('AuthorizationConfiguration', {
    authorizers: list(
      struct('AuthorizerConfiguration', {
        type: text,
        name: text,
        webhook: struct('WebhookConfiguration', {
          authorizedTTL: text,
          cacheAuthorizedRequests: boolean,
          unauthorizedTTL: text,
          cacheUnauthorizedRequests: boolean,
          timeout: text,
          subjectAccessReviewVersion: text,
          matchConditionSubjectAccessReviewVersion: text,
          failurePolicy: text,
          connectionInfo: struct('WebhookConnectionInfo', { type: text, kubeConfigFile: text }),
          matchConditions: list(struct('WebhookMatchCondition', { expression: text })),
        }),
      }),
    ),
  }),
}

type GivenWebhook = Partial<WebhookConfiguration> & Partial<Record<'authorizedTTL' | 'unauthorizedTTL' | 'timeout', string>>
type Given = { readonly authorizers?: readonly { readonly type?: string; readonly name?: string; readonly webhook?: GivenWebhook }[] }

/** With defaults. @throws Error with what is wrong with the file's structure */
export function decodeAuthorizationConfiguration(content: string): AuthorizationConfiguration {
  try {
    const { authorizers = [] } = decodeConfiguration(content, [configurationKind]).value as Given
    return { authorizers: authorizers.map(({ type = '', name = '', webhook }) => ({ type, name, webhook: webhook && withDefaults(webhook) })) }
  } catch (error) {
    throw new Error(`failed to load AuthorizationConfiguration from file: ${(error as Error).message}`)
  }
}

const defaultAuthorizedTtlMs = 300_000
const defaultUnauthorizedTtlMs = 30_000

function withDefaults(given: GivenWebhook): WebhookConfiguration {
  const { connectionInfo, matchConditions = [] } = given
  return {
    authorizedTtlMs: durationMs(given.authorizedTTL) || defaultAuthorizedTtlMs,
    cacheAuthorizedRequests: given.cacheAuthorizedRequests ?? true,
    unauthorizedTtlMs: durationMs(given.unauthorizedTTL) || defaultUnauthorizedTtlMs,
    cacheUnauthorizedRequests: given.cacheUnauthorizedRequests ?? true,
    timeoutMs: durationMs(given.timeout),
    subjectAccessReviewVersion: given.subjectAccessReviewVersion ?? '',
    matchConditionSubjectAccessReviewVersion: given.matchConditionSubjectAccessReviewVersion ?? '',
    failurePolicy: given.failurePolicy ?? '',
    connectionInfo: { ...connectionInfo, type: connectionInfo?.type ?? '' },
    matchConditions: matchConditions.map(({ expression }) => ({ expression: expression ?? '' })),
  }
}

function durationMs(text = '0'): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error(`time: invalid duration ${JSON.stringify(text)}`)
  return ms
}
