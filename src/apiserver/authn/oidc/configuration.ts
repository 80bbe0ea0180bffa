/**
 * The type AuthenticationConfiguration and its decoding (L3). All versions that upstream still reads have these fields.
 * Upstream: apiserver/pkg/apis/apiserver/{v1,v1beta1,v1alpha1}/types.go (v1.36).
 */
import { type ConfigurationKind, decodeConfiguration } from '#api/configuration/decode'
import { boolean, kind, list, struct, text } from '#api/configuration/schemas'

export interface AuthenticationConfiguration {
  readonly jwt: readonly JwtAuthenticatorConfiguration[]
  readonly anonymous?: AnonymousConfiguration | undefined
}

export interface AnonymousConfiguration {
  readonly enabled?: boolean | undefined
  /** Absent or empty: on all paths. */
  readonly conditions?: readonly { readonly path?: string | undefined }[] | undefined
}

export interface JwtAuthenticatorConfiguration {
  readonly issuer: IssuerConfiguration
  readonly claimValidationRules?: readonly ClaimValidationRule[] | undefined
  readonly claimMappings: ClaimMappings
  readonly userValidationRules?: readonly UserValidationRule[] | undefined
}

export interface IssuerConfiguration {
  readonly url?: string | undefined
  /** URL of the discovery document, if it is not below the issuer's URL. */
  readonly discoveryURL?: string | undefined
  /** PEM; absent: the system's. */
  readonly certificateAuthority?: string | undefined
  readonly audiences?: readonly string[] | undefined
  readonly audienceMatchPolicy?: string | undefined
  readonly egressSelectorType?: string | undefined
}

export interface ClaimValidationRule {
  readonly claim?: string | undefined
  readonly requiredValue?: string | undefined
  readonly expression?: string | undefined
  readonly message?: string | undefined
}

export interface UserValidationRule {
  readonly expression?: string | undefined
  readonly message?: string | undefined
}

export interface PrefixedClaimOrExpression {
  readonly claim?: string | undefined
  readonly prefix?: string | undefined
  readonly expression?: string | undefined
}

export interface ClaimMappings {
  readonly username?: PrefixedClaimOrExpression | undefined
  readonly groups?: PrefixedClaimOrExpression | undefined
  readonly uid?: Omit<PrefixedClaimOrExpression, 'prefix'> | undefined
  readonly extra?: readonly { readonly key?: string | undefined; readonly valueExpression?: string | undefined }[] | undefined
}

const prefixed = struct('PrefixedClaimOrExpression', { claim: text, prefix: text, expression: text })

const configurationKind: ConfigurationKind = {
  kind: 'AuthenticationConfiguration',
  apiVersions: ['apiserver.config.k8s.io/v1', 'apiserver.config.k8s.io/v1beta1', 'apiserver.config.k8s.io/v1alpha1'],
  schema: kind('AuthenticationConfiguration', {
    jwt: list(
      struct('JWTAuthenticator', {
        issuer: struct('Issuer', {
          url: text,
          discoveryURL: text,
          certificateAuthority: text,
          audiences: list(text),
          audienceMatchPolicy: text,
          egressSelectorType: text,
        }),
        claimValidationRules: list(struct('ClaimValidationRule', { claim: text, requiredValue: text, expression: text, message: text })),
        claimMappings: struct('ClaimMappings', {
          username: prefixed,
          groups: prefixed,
          uid: struct('ClaimOrExpression', { claim: text, expression: text }),
          extra: list(struct('ExtraMapping', { key: text, valueExpression: text })),
        }),
        userValidationRules: list(struct('UserValidationRule', { expression: text, message: text })),
      }),
    ),
    anonymous: struct('AnonymousAuthConfig', { enabled: boolean, conditions: list(struct('AnonymousAuthCondition', { path: text })) }),
  }),
}

/** @throws Error with what is wrong with the file's structure */
export function decodeAuthenticationConfiguration(content: string): AuthenticationConfiguration {
  const { jwt = [], anonymous } = decodeConfiguration(content, [configurationKind]).value as {
    readonly jwt?: readonly Partial<JwtAuthenticatorConfiguration>[]
    readonly anonymous?: AnonymousConfiguration
  }
  return { jwt: jwt.map((one) => ({ ...one, issuer: one.issuer ?? {}, claimMappings: one.claimMappings ?? {} })), anonymous }
}
