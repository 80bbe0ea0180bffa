/**
 * One webhook of a configuration, made ready to be asked (L3): selectors compiled, its target with its connections; conditions are compiled when a request
 * first matches its rules.
 * Upstream: apiserver/pkg/admission/plugin/webhook/accessors.go, util/webhook/client.go (v1.36).
 */
import type { Agent } from 'node:https'
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type { MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Transport } from '#client/transport'
import type { Reach } from '../../backends/reach.ts'
import type { WebhookTarget } from '../../webhooks/webhookClient.ts'
import { type ResolveService, webhookTarget } from '../../webhooks/webhookTarget.ts'
import { compileMatchConditions, type MatchConditions } from '../cel/matchConditions.ts'
import { type OnDemand, onDemand } from '../cel/onDemand.ts'
import { type Selectors, selectorsOf } from '../matching/selectors.ts'
import { hostPortOf, type IdentityOf } from './identities.ts'

export type Webhook = Frozen<MutatingWebhook | ValidatingWebhook>
export type WebhookConfiguration = Frozen<MutatingWebhookConfiguration | ValidatingWebhookConfiguration>

export interface Hook {
  /** Unique among webhooks of the same name. */
  readonly uid: string
  readonly configuration: string
  readonly webhook: Webhook
  readonly selectors: Selectors
  /** Absent: it has none. */
  readonly conditions: OnDemand<MatchConditions> | undefined
  readonly failsOpen: boolean
  readonly target: WebhookTarget
  /** Calls the server in process, if the webhook is one of its own paths; see {@link HookDeps.own}. */
  readonly own?: HookDeps['own']
  /** Key of the target's connection pool. */
  readonly poolKey: string
}

export interface HookDeps {
  readonly resolve: ResolveService
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** Absent: the server calls all webhooks without credentials. */
  readonly identityOf?: IdentityOf | undefined
  /** The transport for webhooks of the service `kubernetes`, which are paths of this server or of an aggregated API. Absent: called like any service. */
  readonly own?: (() => Transport | undefined) | undefined
  pool(key: string): Agent
}

export function hooksOf(configuration: WebhookConfiguration, deps: HookDeps): Hook[] {
  const name = configuration.metadata.name ?? ''
  const seen = new Map<string, number>()
  return (configuration.webhooks ?? []).map((webhook: Webhook) => {
    const count = seen.get(webhook.name) ?? 0
    seen.set(webhook.name, count + 1)
    const poolKey = JSON.stringify(webhook.clientConfig)
    return {
      uid: `${name}/${webhook.name}/${count}`,
      configuration: name,
      webhook,
      selectors: selectorsOf(webhook),
      conditions: conditionsOf(webhook),
      failsOpen: webhook.failurePolicy === 'Ignore',
      target: targetOf(webhook, poolKey, deps),
      own: isOwn(webhook) ? deps.own : undefined,
      poolKey,
    }
  })
}

function conditionsOf({ matchConditions = [] }: Webhook): Hook['conditions'] {
  if (matchConditions.length === 0) return undefined
  return onDemand(matchConditions, () => compileMatchConditions(new AdmissionCompiler({ hasParams: false }, false), matchConditions))
}

function isOwn({ clientConfig: { service } }: Webhook): boolean {
  return service?.name === 'kubernetes' && service.namespace === 'default' && (service.port ?? 443) === 443
}

function targetOf({ clientConfig }: Webhook, poolKey: string, { resolve, reach, identityOf, pool }: HookDeps): WebhookTarget {
  const target = webhookTarget(clientConfig, resolve, reach)
  return { ...target, identity: identityOf?.(hostPortOf(target.url)), pool: pool(poolKey) }
}
