/**
 * Assembles authorization (L3): system:masters first, then the authorizers of the settings, in their order, each counted. While the server runs, it
 * follows the configuration file: a new list takes over at once, an invalid one is ignored.
 * Upstream: pkg/kubeapiserver/authorizer/{config,reload}.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { ObjectReader } from '../core/objectReader.ts'
import { abacAuthorizer } from './abac.ts'
import { alwaysAllowAuthorizer, alwaysDenyAuthorizer } from './alwaysAllow.ts'
import type { Authorizer } from './authorizer.ts'
import type { AuthorizationMode } from './configuration/types.ts'
import { countedAuthorizer, reloadMetrics, webhookAuthorizerMetrics } from './metrics.ts'
import { nodeAuthorizer } from './node.ts'
import { privilegedGroupAuthorizer } from './privilegedGroup.ts'
import { type RbacAuthorizer, rbacAuthorizer } from './rbac.ts'
import type { AuthorizationFile, AuthorizationSettings, ConfiguredAuthorizer } from './settings.ts'
import { authorize, nearestRules, rulesFor } from './union.ts'
import { webhookAuthorizer } from './webhook.ts'

export interface AuthorizationDeps {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly featureGates?: FeatureGateSettings | undefined
}

export interface Authorization {
  readonly authorizers: readonly Authorizer[]
  /** Present even if RBAC is no authorizer of the list: the escalation check uses it. */
  readonly rbac: RbacAuthorizer
  /** Begins to follow the configuration file, if there is one, until the signal aborts. */
  start(signal: AbortSignal): void
}

export function createAuthorization(deps: AuthorizationDeps, settings: AuthorizationSettings): Authorization {
  const { reader } = deps
  const rbac = rbacAuthorizer(reader)
  // A reloaded list can only name local authorizers of the first list. They are kept, because they have indexes.
  const kept = new Map<AuthorizationMode, Authorizer>([
    ['AlwaysAllow', alwaysAllowAuthorizer],
    ['AlwaysDeny', alwaysDenyAuthorizer],
  ])
  for (const { type } of settings.authorizers) {
    if (type === 'Node') kept.set(type, nodeAuthorizer(reader, deps.featureGates))
    else if (type === 'RBAC') kept.set(type, rbac)
    else if (type === 'ABAC') kept.set(type, abacAuthorizer(settings.policies ?? []))
  }
  const build = (configured: readonly ConfiguredAuthorizer[]) => configured.map((one) => buildAuthorizer(one, kept, deps))
  const { file } = settings
  if (!file) return { authorizers: [privilegedGroupAuthorizer, ...build(settings.authorizers)], rbac, start: () => {} }
  const required = settings.authorizers.map(({ type }) => type).filter((type) => type !== 'Webhook')
  const reloading = reloadingAuthorizer(build(settings.authorizers), async (content) => build(await file.read(content, required)))
  return {
    authorizers: [privilegedGroupAuthorizer, reloading.authorizer],
    rbac,
    start: (signal) => followFile(file, reloading.replace, deps, signal),
  }
}

function buildAuthorizer(configured: ConfiguredAuthorizer, kept: ReadonlyMap<AuthorizationMode, Authorizer>, deps: AuthorizationDeps): Authorizer {
  const { type, name } = configured
  const known = type === 'Webhook' ? buildWebhook(configured, deps) : kept.get(type)
  if (!known) throw new Error(`authorizer type ${type} is not allowed if it was not enabled at initial server startup`)
  return countedAuthorizer(type, name, known, deps.metrics)
}

function buildWebhook({ name, webhook, transport, conditions }: ConfiguredAuthorizer, { clock, random, log, metrics }: AuthorizationDeps): Authorizer {
  if (!webhook || !transport) throw new Error(`authorizer ${name} has no connection to a webhook`)
  return webhookAuthorizer(
    { clock, random, log, metrics: webhookAuthorizerMetrics(metrics, name) },
    {
      transport,
      version: webhook.subjectAccessReviewVersion === 'v1' ? 'v1' : 'v1beta1',
      authorizedTtlMs: webhook.cacheAuthorizedRequests ? webhook.authorizedTtlMs : 0,
      unauthorizedTtlMs: webhook.cacheUnauthorizedRequests ? webhook.unauthorizedTtlMs : 0,
      timeoutMs: webhook.timeoutMs,
      decisionOnError: webhook.failurePolicy === 'Deny' ? 'deny' : 'noOpinion',
      conditions,
    },
  )
}

function reloadingAuthorizer(first: readonly Authorizer[], read: (content: string) => Promise<readonly Authorizer[]>) {
  let current = first
  const authorizer: Authorizer = {
    name: 'reloading',
    authorize: (attributes) => authorize(current, attributes),
    rulesFor: (user, namespace) => rulesFor(current, user, namespace),
    nearest: (attributes) => nearestRules(current, attributes),
  }
  return {
    authorizer,
    replace: async (content: string) => {
      current = await read(content)
    },
  }
}

/** There is one API server. */
const serverId = 'kube-apiserver'

function followFile(
  { source, content }: AuthorizationFile,
  replace: (content: string) => Promise<void>,
  { clock, log, metrics }: AuthorizationDeps,
  signal: AbortSignal,
): void {
  const recorded = reloadMetrics(metrics, clock, serverId)
  recorded.applied(content)
  let last = Promise.resolve()
  const reload = async (text: string) => {
    try {
      await replace(text)
      recorded.reloaded('success')
      recorded.applied(text)
      log.info('Reloaded the authorization configuration', { path: source.path })
    } catch (error) {
      recorded.reloaded('failure')
      log.error(error, 'Reloading the authorization configuration failed: the one before holds', { path: source.path })
    }
  }
  source.follow((text) => {
    last = last.then(() => reload(text))
  }, signal)
}
