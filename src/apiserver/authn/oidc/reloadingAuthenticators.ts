/**
 * The authenticators of all issuers (L3), recreated when the configuration file changes. A new configuration takes over once its issuers are
 * discovered, at the latest after a minute; tokens being checked finish under the old one. An invalid configuration is ignored.
 * Upstream: ApplyTo of pkg/kubeapiserver/options/authentication.go, updateAuthenticationConfig of pkg/kubeapiserver/authenticator/config.go (v1.36).
 */
import { isDeepStrictEqual } from 'node:util'
import { FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { ConfigFile } from '../../core/configFile.ts'
import { aggregateReasons } from '../../core/reasons.ts'
import type { TokenAuthenticator, TokenResult } from '../tokenAuthenticator.ts'
import { firstThatAuthenticates } from '../union.ts'
import { type AuthenticationConfiguration, decodeAuthenticationConfiguration } from './configuration.ts'
import { type JwtAuthenticator, type JwtAuthenticatorDeps, jwtAuthenticator } from './jwtAuthenticator.ts'
import { type ValidatedAuthenticator, validateAuthenticationConfiguration } from './validation.ts'

export interface JwtSettings {
  readonly authenticators: readonly ValidatedAuthenticator[]
  /** Accepted signature algorithms. */
  readonly algorithms: readonly string[]
  /** The file that configures them; absent: flags do. */
  readonly file?: { readonly source: ConfigFile; readonly content: string; readonly configuration: AuthenticationConfiguration } | undefined
}

/** Upstream: AllValidSigningAlgorithms. */
export const signingAlgorithms = ['ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const

const takeOverMs = 60_000
const lookMs = 100

/** @throws Error with every fault of the configuration, or when it cannot be read */
export function validConfiguration(
  content: string,
  disallowedIssuers: readonly string[],
  before?: AuthenticationConfiguration,
): { readonly configuration: AuthenticationConfiguration; readonly authenticators: readonly ValidatedAuthenticator[] } {
  const configuration = decodeAuthenticationConfiguration(content)
  const { faults, authenticators } = validateAuthenticationConfiguration(configuration, disallowedIssuers)
  const isOtherwise = before && !isDeepStrictEqual(before.anonymous, configuration.anonymous)
  const all = isOtherwise ? [...faults, fieldError.forbidden(FieldPath.of('anonymous'), 'changed from initial configuration file')] : faults
  if (all.length > 0) throw new Error(aggregateReasons(all.map(({ field, body }) => `${field}: ${body}`)))
  const egress = configuration.jwt.find(({ issuer }) => issuer.egressSelectorType)?.issuer.egressSelectorType
  if (egress) throw new Error(`oidc: egress lookup required with egress selector type ${JSON.stringify(egress)}`)
  return { configuration, authenticators }
}

export interface ReloadingAuthenticators extends TokenAuthenticator {
  /** Starts to discover the issuers and to follow the file; the signal ends both. */
  start(signal: AbortSignal): void
}

interface Generation {
  readonly authenticators: readonly JwtAuthenticator[]
  readonly stop: AbortController
}

export function reloadingAuthenticators(deps: JwtAuthenticatorDeps, settings: JwtSettings, disallowedIssuers: readonly string[]): ReloadingAuthenticators {
  let current: Generation | undefined
  const generation = (authenticators: readonly ValidatedAuthenticator[], signal: AbortSignal): Generation => {
    const stop = new AbortController()
    if (signal.aborted) stop.abort()
    signal.addEventListener('abort', () => stop.abort(), { once: true })
    return { authenticators: authenticators.map((one) => jwtAuthenticator(deps, one, stop.signal)), stop }
  }
  const replaceBy = async (content: string, before: AuthenticationConfiguration, signal: AbortSignal) => {
    const { authenticators } = validConfiguration(content, disallowedIssuers, before)
    const next = generation(authenticators, signal)
    if (!(await isReadySoon(deps, next, signal))) {
      next.stop.abort()
      throw new Error('the issuers of the new authentication configuration were not found in time')
    }
    const last = current
    current = next
    // Checks in progress may still need its issuers.
    void deps.clock.sleep(takeOverMs, signal).then(
      () => last?.stop.abort(),
      () => undefined,
    )
  }
  return {
    name: 'jwt',
    authenticateToken(token, audiences): Promise<TokenResult> | TokenResult {
      return current ? firstThatAuthenticates(current.authenticators, (one) => one.authenticateToken(token, audiences)) : undefined
    },
    start(signal) {
      current = generation(settings.authenticators, signal)
      const { file } = settings
      if (!file) return
      deps.metrics.applied(file.content)
      let last = Promise.resolve()
      const reload = async (content: string) => {
        try {
          await replaceBy(content, file.configuration, signal)
          deps.metrics.reloaded('success')
          deps.metrics.applied(content)
          deps.log.info('Reloaded the authentication configuration', { path: file.source.path })
        } catch (error) {
          if (signal.aborted) return
          deps.metrics.reloaded('failure')
          deps.log.error(error, 'Reloading the authentication configuration failed: the one before holds', { path: file.source.path })
        }
      }
      file.source.follow((content) => {
        last = last.then(() => reload(content))
      }, signal)
    },
  }
}

async function isReadySoon({ clock }: JwtAuthenticatorDeps, { authenticators }: Generation, signal: AbortSignal): Promise<boolean> {
  const untilMs = clock.monotonicMs() + takeOverMs
  while (!signal.aborted && clock.monotonicMs() < untilMs) {
    if (authenticators.every((one) => one.isReady())) return true
    await clock.sleep(lookMs, signal).catch(() => undefined)
  }
  return false
}
