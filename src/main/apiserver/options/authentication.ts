/**
 * The flags of authentication (L5).
 * Upstream: pkg/kubeapiserver/options/authentication.go, apiserver/pkg/server/options/authentication.go (v1.36).
 */

import { type AuthenticationSettings, defaultIssuer, type RequestHeaderSettings, type ServiceAccountSettings } from '#apiserver/authn/settings'
import { parseTokenFile } from '#apiserver/authn/tokenFile'
import { signingKey, verificationKeys } from '#apiserver/tokens/keys'
import { noLog } from '#base/log'
import { certificateBlocks } from '#base/pem'
import { duration, type FlagValues, flag, list, text, texts, UsageError } from './flags.ts'
import { authoritiesOf, type Followed, readFollowed, readNamed, usable } from './namedFiles.ts'
import { jwtOptions, oidcFaults, oidcFlags } from './oidc.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'
import { webhookTokenFaults, webhookTokenFlags, webhookTokenSettings } from './webhookToken.ts'

const flags = {
  'anonymous-auth': flag('Requests without any credential are those of system:anonymous, in the group system:unauthenticated', true),
  'api-audiences': list('Names of this API: a service account token must be meant for one of them; none: the issuers of such tokens'),
  ...webhookTokenFlags,
  'authentication-config': text('A file of kind AuthenticationConfiguration: issuers of ID tokens, and the anonymous user'),
  'client-ca-file': text('Who signs client certificates of users: the common name is the user, the organizations are the groups'),
  'enable-bootstrap-token-auth': flag('Secrets of type bootstrap.kubernetes.io/token in kube-system authenticate machines that join'),
  ...oidcFlags,
  'requestheader-allowed-names': list('Common names that the certificate of a front proxy may have; none: any that its authority signed'),
  'requestheader-client-ca-file': text('Who signs certificates of front proxies, which say in headers who is asking'),
  'requestheader-extra-headers-prefix': list('Prefixes of the headers with further facts about the user; X-Remote-Extra- is usual'),
  'requestheader-group-headers': list('Headers with the groups; X-Remote-Group is usual'),
  'requestheader-uid-headers': list('Headers with the uid; X-Remote-Uid is usual'),
  'requestheader-username-headers': list('Headers with the name; X-Remote-User is usual'),
  'service-account-extend-token-expiration': flag(
    'Tokens that admission injects into pods live for a year, whatever the longest is, and are reported when stale',
    true,
  ),
  'service-account-issuer': texts('Who issues service account tokens, as a URL or a name; of several the first one issues and all are accepted'),
  'service-account-jwks-uri': text('Where the keys of service account tokens are served, if not below the issuer'),
  'service-account-key-file': texts('Keys that verify service account tokens, PEM, public or private; absent: the one that signs'),
  'service-account-lookup': flag('The secret that a service account token was made for must still be there', true),
  'service-account-max-token-expiration': duration('How long a service account token may be valid; requests for more get this', 0),
  'service-account-signing-endpoint': text(
    'The unix socket of a service that signs service account tokens and tells the keys that verify them; @name: an abstract one',
  ),
  'service-account-signing-key-file': text('The private key that signs service account tokens, PEM'),
  'token-auth-file': text('Tokens and their users, a line of CSV each: token,name,uid,"group1,group2"'),
} as const

type Values = FlagValues<typeof flags>

/** The server's settings, and the authorities whose client certificates its port accepts. */
export interface AuthenticationOptions {
  readonly settings: AuthenticationSettings
  /** Whether anonymous requests are allowed is what the file of --authentication-config says, not the flag. */
  readonly isAnonymousByFile: boolean
  /** The unix socket of the service that signs service account tokens. */
  readonly signingEndpoint: string | undefined
  /** PEM; the value is undefined when no file was named. */
  readonly clientCa: Followed<string | undefined>
  readonly requestHeaderCa: Followed<string | undefined>
}

export const authentication = optionGroup({
  name: 'Authentication',
  flags,
  async settings(values, context): Promise<AuthenticationOptions> {
    const faults = checks.flatMap((check) => check(values))
    if (faults.length > 0) throw new UsageError(faults)
    const serviceAccounts = await serviceAccountSettings(values, context)
    const read = (flagName: keyof Values) => readNamed(values[flagName] as string, context)
    const authorities = (flagName: 'client-ca-file' | 'requestheader-client-ca-file') => readFollowed([values[flagName]], context, authoritiesOf)
    const [clientCa, requestHeaderCa, tokenText] = await Promise.all([
      authorities('client-ca-file'),
      authorities('requestheader-client-ca-file'),
      read('token-auth-file'),
    ])
    const { jwt, anonymous, isAnonymousByFile } = await jwtOptions(values, serviceAccounts.issuers, context)
    const tokenFile = tokenText === undefined ? undefined : usable(() => parseTokenFile(tokenText, values['token-auth-file'], noLog))
    if (clientCa.value && requestHeaderCa.value && values['requestheader-allowed-names'].length === 0 && overlap(clientCa.value, requestHeaderCa.value)) {
      throw new UsageError([overlapping])
    }
    return {
      settings: {
        apiAudiences: values['api-audiences'],
        anonymous,
        bootstrapTokens: values['enable-bootstrap-token-auth'],
        requestHeader: requestHeaderCa.value === undefined ? undefined : requestHeaderSettings(values),
        serviceAccounts,
        tokenFile,
        jwt,
        webhook: await webhookTokenSettings(values, context),
      },
      isAnonymousByFile,
      signingEndpoint: values['service-account-signing-endpoint'] || undefined,
      clientCa,
      requestHeaderCa,
    }
  },
})

function requestHeaderSettings(values: Values): RequestHeaderSettings {
  const names = (flagName: `requestheader-${'username' | 'uid' | 'group'}-headers` | 'requestheader-extra-headers-prefix') =>
    values[flagName].map((name) => name.trim())
  return {
    allowedNames: values['requestheader-allowed-names'],
    usernameHeaders: names('requestheader-username-headers'),
    uidHeaders: names('requestheader-uid-headers'),
    groupHeaders: names('requestheader-group-headers'),
    extraHeaderPrefixes: names('requestheader-extra-headers-prefix'),
  }
}

async function serviceAccountSettings(values: Values, context: OptionContext): Promise<ServiceAccountSettings> {
  const key = await readNamed(values['service-account-signing-key-file'], context)
  const keys = await Promise.all(values['service-account-key-file'].map((path) => readNamed(path, context)))
  if (key !== undefined) usable(() => signingKey(key))
  for (const pem of keys) usable(() => verificationKeys(pem ?? ''))
  const maxMs = values['service-account-max-token-expiration']
  return {
    issuers: values['service-account-issuer'].length > 0 ? values['service-account-issuer'] : [defaultIssuer],
    signingKey: key,
    keys: keys.length > 0 ? keys.map((pem) => pem ?? '') : undefined,
    lookup: values['service-account-lookup'],
    maxExpirationSeconds: maxMs > 0 ? maxMs / 1000 : undefined,
    extendExpiration: values['service-account-extend-token-expiration'],
    jwksUri: values['service-account-jwks-uri'] || undefined,
  }
}

const overlapping =
  '--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users'

function overlap(one: string, other: string): boolean {
  const bodies = (pem: string) => certificateBlocks(pem).map((block) => block.replace(/\s/g, ''))
  const known = new Set(bodies(one))
  return bodies(other).some((body) => known.has(body))
}

const headerFlags = [
  'requestheader-username-headers',
  'requestheader-group-headers',
  'requestheader-extra-headers-prefix',
  'requestheader-allowed-names',
  'requestheader-uid-headers',
] as const
const longestExpirationMs = 2 ** 32 * 1000

const checks: readonly ((values: Values) => readonly string[])[] = [
  webhookTokenFaults,
  (values) => oidcFaults(values, values['authentication-config'] !== ''),
  (values) => headerFlags.filter((name) => values[name].some((value) => value.trim() === '')).map((name) => `empty value in "${name}"`),
  ({ 'requestheader-uid-headers': headers }) =>
    headers.length > 0 && !headers.some((header) => header.toLowerCase() === 'x-remote-uid')
      ? ['--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work']
      : [],
  ({ 'service-account-issuer': issuers }) => issuers.flatMap((issuer, at) => issuerFaults(issuer, issuers.indexOf(issuer) < at)),
  ({ 'service-account-jwks-uri': uri }) => jwksUriFaults(uri),
  ({ 'service-account-max-token-expiration': maxMs }) =>
    maxMs !== 0 && (maxMs < 3_600_000 || maxMs > longestExpirationMs)
      ? ['the service-account-max-token-expiration must be between 1 hour and 2^32 seconds']
      : [],
  (values) =>
    values['service-account-signing-endpoint'] !== '' && (values['service-account-signing-key-file'] !== '' || values['service-account-key-file'].length > 0)
      ? [
          "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)",
        ]
      : [],
  (values) =>
    values['service-account-signing-key-file'] !== '' && values['service-account-key-file'].length === 0
      ? ['service-account-key-file must be specified when service-account-signing-key-file is provided']
      : [],
]

function issuerFaults(issuer: string, isRepeated: boolean): string[] {
  if (issuer === '') return ['service-account-issuer should not be an empty string']
  if (issuer.includes(':') && !URL.canParse(issuer)) return [`service-account-issuer "${issuer}" contained a ':' but was not a valid URL`]
  return isRepeated ? [`service-account-issuer "${issuer}" is already specified`] : []
}

function jwksUriFaults(uri: string): string[] {
  if (uri === '') return []
  if (!URL.canParse(uri)) return [`service-account-jwks-uri must be a valid URL: ${uri}`]
  return new URL(uri).protocol === 'https:' ? [] : [`service-account-jwks-uri requires https scheme, parsed as: ${uri}`]
}
