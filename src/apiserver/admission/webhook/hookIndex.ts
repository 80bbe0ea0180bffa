/**
 * The webhooks of all configurations of one kind (L3), in calling order: by configuration, then as listed. The webhooks that can match
 * a kind of request are computed once and cached until a configuration, or the versions of the resource, change.
 * Upstream: apiserver/pkg/admission/configuration/*_webhook_manager.go.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { AdmissionForms, ObjectReader } from '../../core/objectReader.ts'
import { createWebhookPool, retireWebhookPool } from '../../webhooks/webhookClient.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { type Invocation, matchRules, subjectOf } from '../matching/rules.ts'
import { type Hook, type HookDeps, hooksOf, type WebhookConfiguration } from './hook.ts'

export interface Candidate {
  readonly hook: Hook
  /** Its index among all webhooks. */
  readonly index: number
  readonly invocation: Invocation
}

interface Kept {
  readonly forms: AdmissionForms | undefined
  readonly candidates: readonly Candidate[]
}

/** Kinds of requests whose candidates are cached. */
const maxKept = 4096

type Pools = Map<string, ReturnType<typeof createWebhookPool>>
/** How webhooks are reached. */
export type HookWays = Pick<HookDeps, 'resolve' | 'reach' | 'identityOf' | 'own'>
type Compiled = Map<WebhookConfiguration, readonly Hook[]>

export class HookIndex {
  readonly #reader: ObjectReader
  readonly #resource: { readonly group: string; readonly resource: string }
  readonly #ways: HookWays
  #pools: Pools = new Map()
  /** Compiled configurations; unchanged ones are not compiled again. */
  #compiled: Compiled = new Map()
  #hooks: readonly Hook[] = []
  readonly #candidates = new Map<string, Kept>()
  #isOutdated = true

  /** `resource`: the configurations' resource. */
  constructor(reader: ObjectReader, resource: { readonly group: string; readonly resource: string }, ways: HookWays) {
    this.#reader = reader
    this.#resource = resource
    this.#ways = ways
    reader.onChange<KubeObject>(resource, () => {
      this.#isOutdated = true
    })
  }

  get isEmpty(): boolean {
    return this.#current().length === 0
  }

  /** Webhooks whose rules match the request. `namespace`: see requestNamespace. */
  candidates(attributes: AdmissionAttributes, namespace: string): readonly Candidate[] {
    const hooks = this.#current()
    const { operation, resource, subresource, forms } = attributes
    const key = `${operation} ${resource.group}/${resource.version}/${resource.resource}/${subresource} ${namespace === '' ? '' : 'namespaced'}`
    const known = this.#candidates.get(key)
    if (known && known.forms === forms) return known.candidates
    const subject = subjectOf(attributes, namespace)
    const candidates = hooks.flatMap((hook, index) => {
      const invocation = matchRules(hook.webhook.rules ?? [], hook.webhook.matchPolicy, subject)
      return invocation ? [{ hook, index, invocation }] : []
    })
    // Resources are added and removed, too.
    if (this.#candidates.size >= maxKept) this.#candidates.clear()
    this.#candidates.set(key, { forms, candidates })
    return candidates
  }

  #current(): readonly Hook[] {
    if (this.#isOutdated) this.#rebuild()
    return this.#hooks
  }

  #rebuild(): void {
    this.#isOutdated = false
    const configurations = [...this.#reader.list<KubeObject>(this.#resource)] as unknown as WebhookConfiguration[]
    configurations.sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
    const pools: Pools = new Map()
    const pool = (key: string) => {
      const found = pools.get(key) ?? this.#pools.get(key) ?? createWebhookPool(this.#ways.reach)
      pools.set(key, found)
      return found
    }
    const compiled: Compiled = new Map()
    for (const configuration of configurations) {
      const known = this.#compiled.get(configuration)
      for (const { poolKey } of known ?? []) pool(poolKey)
      compiled.set(configuration, known ?? hooksOf(configuration, { ...this.#ways, pool }))
    }
    for (const [key, old] of this.#pools) if (!pools.has(key)) retireWebhookPool(old)
    this.#pools = pools
    this.#compiled = compiled
    this.#hooks = [...compiled.values()].flat()
    this.#candidates.clear()
  }
}
