/**
 * Issuers of ID tokens, from flags or a file (L5), and the anonymous user, which the file may configure too.
 * Upstream: OIDCAuthenticationOptions and ToAuthenticationConfig of pkg/kubeapiserver/options/authentication.go (v1.36).
 */
import type { JwtAuthenticatorConfiguration } from '#apiserver/authn/oidc/configuration'
import { type JwtSettings, signingAlgorithms, validConfiguration } from '#apiserver/authn/oidc/reloadingAuthenticators'
import { validateAuthenticationConfiguration } from '#apiserver/authn/oidc/validation'
import type { AuthenticationSettings } from '#apiserver/authn/settings'
import { aggregateReasons } from '#apiserver/core/reasons'
import { type FlagValues, list, text, texts, UsageError } from './flags.ts'
import { readNamed, usable } from './namedFiles.ts'
import type { OptionContext } from './optionGroup.ts'

export const oidcFlags = {
  'oidc-ca-file': text("Who signs the certificate of the issuer's server; absent: the system's authorities"),
  'oidc-client-id': text('The audience that ID tokens must be meant for; needed with --oidc-issuer-url'),
  'oidc-groups-claim': text('The claim with the groups, a text or a list'),
  'oidc-groups-prefix': text('What stands before the groups, so that they are no groups of others'),
  'oidc-issuer-url': text('The issuer of ID tokens; only https'),
  'oidc-required-claim': texts('A claim that must be there with this value, as key=value'),
  'oidc-signing-algs': list('Signatures that are taken, of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512', ['RS256']),
  'oidc-username-claim': text("The claim with the user's name", 'sub'),
  'oidc-username-prefix': text('What stands before the name: by default the issuer and #, except for the claim email; - for nothing'),
} as const

type Values = FlagValues<typeof oidcFlags>

const isSet = (values: Values, name: keyof Values): boolean => String(values[name]) !== String(oidcFlags[name].default)

export function oidcFaults(values: Values, hasFile: boolean): string[] {
  const anySet = (Object.keys(oidcFlags) as (keyof Values)[]).some((name) => isSet(values, name))
  if (!anySet) return []
  if (hasFile) return ['authentication-config file and oidc-* flags are mutually exclusive']
  const faults = values['oidc-signing-algs']
    .filter((algorithm) => !(signingAlgorithms as readonly string[]).includes(algorithm))
    .map((algorithm) => `oidc: unsupported signing alg: ${JSON.stringify(algorithm)}`)
  if (values['oidc-issuer-url'] === '' || values['oidc-client-id'] === '') {
    faults.unshift('oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set')
  }
  for (const claim of values['oidc-required-claim']) {
    if (claim.indexOf('=') <= 0) faults.push(`invalid argument ${JSON.stringify(claim)} for "--oidc-required-claim" flag: malformed pair, expect string=string`)
  }
  return faults
}

export interface JwtOptions {
  readonly jwt: JwtSettings | undefined
  readonly anonymous: AuthenticationSettings['anonymous']
  /** The file says it, not the flag. */
  readonly isAnonymousByFile: boolean
}

/** @throws UsageError with what is wrong with the flags or the file */
export async function jwtOptions(
  values: Values & { readonly 'authentication-config': string; readonly 'anonymous-auth': boolean },
  serviceAccountIssuers: readonly string[],
  context: OptionContext,
): Promise<JwtOptions> {
  const byFlag = values['anonymous-auth'] ? { paths: [] } : undefined
  const path = values['authentication-config']
  if (path === '') return { jwt: await jwtOfFlags(values, serviceAccountIssuers, context), anonymous: byFlag, isAnonymousByFile: false }
  const source = context.file(path)
  const content = (await readNamed(path, { file: () => source })) ?? ''
  const { configuration, authenticators } = usable(() => labelled(path, () => validConfiguration(content, serviceAccountIssuers)))
  const { anonymous } = configuration
  if (anonymous && context.isGiven?.('anonymous-auth')) {
    throw new UsageError(['anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file'])
  }
  const byFile = anonymous?.enabled ? { paths: (anonymous.conditions ?? []).map((condition) => condition.path ?? '') } : undefined
  const file = { source, content, configuration }
  return { jwt: { authenticators, algorithms: signingAlgorithms, file }, anonymous: anonymous ? byFile : byFlag, isAnonymousByFile: anonymous !== undefined }
}

function labelled<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Error(`failed to load authentication configuration from file ${JSON.stringify(path)}: ${(error as Error).message}`)
  }
}

async function jwtOfFlags(values: Values, serviceAccountIssuers: readonly string[], context: OptionContext): Promise<JwtSettings | undefined> {
  const url = values['oidc-issuer-url']
  if (url === '') return undefined
  const certificateAuthority = await readNamed(values['oidc-ca-file'], context)
  const configuration = configurationOf(values, certificateAuthority)
  const { faults, authenticators } = validateAuthenticationConfiguration({ jwt: [configuration] }, serviceAccountIssuers)
  if (faults.length > 0) {
    throw new UsageError([`invalid authentication configuration: ${aggregateReasons(faults.map(({ field, body }) => `${field}: ${body}`))}`])
  }
  return { authenticators, algorithms: values['oidc-signing-algs'] }
}

function configurationOf(values: Values, certificateAuthority: string | undefined): JwtAuthenticatorConfiguration {
  const url = values['oidc-issuer-url']
  const claim = values['oidc-username-claim']
  const given = values['oidc-username-prefix']
  const prefix = given === '-' ? '' : given === '' && claim !== 'email' ? `${url}#` : given
  const groups = values['oidc-groups-claim']
  return {
    issuer: { url, audiences: [values['oidc-client-id']], certificateAuthority },
    claimMappings: {
      username: { claim, prefix },
      ...(groups === '' ? {} : { groups: { claim: groups, prefix: values['oidc-groups-prefix'] } }),
    },
    claimValidationRules: values['oidc-required-claim'].map((pair) => {
      const at = pair.indexOf('=')
      return { claim: pair.slice(0, at), requiredValue: pair.slice(at + 1) }
    }),
  }
}
