/**
 * Encryption at rest of a server (L3): the transformers of the configuration file, their health checks, and the reload when the file changes.
 * Upstream: apiserver/pkg/server/options/encryptionconfig (config.go, controller/controller.go; v1.36).
 */

import { createHash } from 'node:crypto'
import { type AbortScope, abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { aborted } from '#base/orAborted'
import { type Random, randomUid } from '#base/random'
import type { ConfigFile } from '../core/configFile.ts'
import type { HealthCheck } from '../core/health.ts'
import { aggregateReasons } from '../core/reasons.ts'
import { decodeEncryptionConfiguration, type EncryptionConfiguration } from './configuration.ts'
import type { GroupResource } from './groupResource.ts'
import type { ConnectKms } from './kmsService.ts'
import { type EncryptionMetrics, encryptionMetrics } from './metrics.ts'
import { createProviders, type ProviderDeps, type Providers } from './providers.ts'
import type { ValueTransformer } from './transformer.ts'
import { validateEncryptionConfiguration } from './validation.ts'

/** The registry's view: the transformer of each resource. */
export interface ResourceTransformers {
  /** The returned transformer always uses the newest configuration. */
  transformerFor(resource: GroupResource): ValueTransformer
  /** Calls back when values may have become readable. */
  onChange(changed: () => void): void
}

export interface Encryption {
  readonly transformers: ResourceTransformers
  readonly healthChecks: readonly HealthCheck[]
  /** Probes the key management services, and follows the file, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export interface EncryptionDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly connectKms: ConnectKms
}

export interface EncryptionSettings {
  readonly file: ConfigFile
  readonly content: string
  readonly configuration: EncryptionConfiguration
  readonly reload: boolean
}

/** @throws Error with every fault, naming the file */
export function parseEncryptionConfiguration(path: string, content: string, reload: boolean): EncryptionConfiguration {
  const configuration = parsed(path, content)
  const faults = validateEncryptionConfiguration(configuration, reload)
  if (faults.length > 0) throw new Error(`error while parsing file: ${aggregateReasons(faults.map(({ field, body }) => `${field}: ${body}`))}`)
  return configuration
}

function parsed(path: string, content: string): EncryptionConfiguration {
  const where = JSON.stringify(path)
  if (content === '') throw new Error(`error while parsing file: error while loading file: encryption provider configuration file ${where} is empty`)
  try {
    return decodeEncryptionConfiguration(content)
  } catch (error) {
    const why = (error as Error).message
    throw new Error(`error while parsing file: error decoding encryption provider configuration file ${where}: ${why}`, { cause: error })
  }
}

/** The services of a new configuration must be healthy within this time, or twice the sum of their timeouts. */
const leastTakeOverMs = 10_000
const lookMs = 100
const retryMs = 1_000
const longestRetryMs = 60_000

const checkName = 'kms-providers'

/** Resolves when every key management service was probed once; failed probes are repeated in the background. @throws Error */
export async function createEncryption(deps: EncryptionDeps, settings: EncryptionSettings): Promise<Encryption> {
  const metrics = encryptionMetrics(deps.metrics, deps.clock, `apiserver-${randomUid(deps.random)}`)
  const providerDeps: ProviderDeps = { ...deps, metrics, newUid: () => randomUid(deps.random) }
  const first = build(settings.configuration, providerDeps)
  metrics.configuration(contentHash(settings.content))
  await healthOf(first)
  const running = new RunningProviders(first, providerDeps)
  const usesKms = first.services.length > 0
  return {
    transformers: running,
    // As upstream, only in readyz and healthz: a server must not be restarted because a service is down.
    healthChecks: settings.reload || usesKms ? [{ name: checkName, livez: false, check: async () => (await healthOf(running.current))?.message }] : [],
    async run(signal) {
      running.start(signal)
      if (settings.reload) followFile(running, { ...providerDeps, settings }, signal)
      await aborted(signal)
      running.close()
    },
  }
}

function build(configuration: EncryptionConfiguration, deps: ProviderDeps): Providers {
  try {
    return createProviders(configuration, deps)
  } catch (error) {
    throw new Error(`error while building transformers: ${(error as Error).message}`, { cause: error })
  }
}

/** Checks every service, one after another. */
async function healthOf({ services }: Providers): Promise<Error | undefined> {
  const problems: string[] = []
  for (const [at, { probe }] of services.entries()) {
    const error = await probe.check()
    if (error) problems.push(`kms-provider-${at}: ${error.message}`)
  }
  return problems.length === 0 ? undefined : new Error(aggregateReasons(problems))
}

/** The providers in use. */
class RunningProviders implements ResourceTransformers {
  readonly #deps: ProviderDeps
  readonly #listeners: (() => void)[] = []
  #current: Providers
  #stop: AbortScope = abortScope()
  #signal: AbortSignal | undefined

  constructor(first: Providers, deps: ProviderDeps) {
    this.#current = first
    this.#deps = deps
  }

  get current(): Providers {
    return this.#current
  }

  transformerFor(resource: GroupResource): ValueTransformer {
    let providers = this.#current
    let transformer = providers.transformerFor(resource)
    const newest = () => {
      if (providers !== this.#current) {
        providers = this.#current
        transformer = providers.transformerFor(resource)
      }
      return transformer
    }
    return {
      fromStorage: (data, context) => newest().fromStorage(data, context),
      toStorage: (data, context) => newest().toStorage(data, context),
    }
  }

  onChange(changed: () => void): void {
    this.#listeners.push(changed)
  }

  start(signal: AbortSignal): void {
    this.#signal = signal
    this.#probe(this.#current, signal)
  }

  /** The old providers stay open until their pending calls are done. */
  replaceBy(next: Providers): void {
    const old = this.#current
    this.#stop.abort()
    this.#current = next
    if (this.#signal) this.#probe(next, this.#signal)
    this.#deps.clock.timer(graceMs(old), () => closeServices(old))
    for (const changed of this.#listeners) changed()
  }

  close(): void {
    this.#stop.abort()
    closeServices(this.#current)
  }

  #probe({ services }: Providers, signal: AbortSignal): void {
    if (services.length === 0) return
    this.#stop = abortScope(signal)
    for (const { probe } of services) void probe.run(this.#stop.signal)
  }
}

const graceMs = ({ services }: Providers) => 2 * services.reduce((sum, { timeoutMs }) => sum + timeoutMs, 0)

function closeServices({ services }: Providers): void {
  for (const { service } of services) service.close()
}

const contentHash = (content: string) => `sha256:${createHash('sha256').update(content).digest('hex')}`

interface ReloadDeps extends ProviderDeps {
  readonly metrics: EncryptionMetrics
  readonly settings: EncryptionSettings
}

/** Loads the file whenever it changes; a failure is retried until it succeeds or the file changes again. */
function followFile(running: RunningProviders, deps: ReloadDeps, signal: AbortSignal): void {
  const { file } = deps.settings
  let loaded = deps.settings.content
  let newest = loaded
  let isWorking = false
  const work = async () => {
    isWorking = true
    for (let pauseMs = retryMs; newest !== loaded && !signal.aborted; ) {
      const content = newest
      try {
        running.replaceBy(await wellProviders(content, deps, signal))
        loaded = content
        pauseMs = retryMs
        deps.metrics.reloaded(true)
        deps.metrics.configuration(contentHash(content))
        deps.log.v(2).info('Loaded new kms encryption config content', { name: file.path })
      } catch (error) {
        if (signal.aborted) break
        deps.metrics.reloaded(false)
        deps.log.error(error, 'error processing encryption config file', { file: file.path })
        await deps.clock.sleep(pauseMs, signal).catch(() => undefined)
        pauseMs = Math.min(2 * pauseMs, longestRetryMs)
      }
    }
    isWorking = false
  }
  file.follow((content) => {
    newest = content
    if (!isWorking) void work()
  }, signal)
}

async function wellProviders(content: string, deps: ReloadDeps, signal: AbortSignal): Promise<Providers> {
  const next = build(parseEncryptionConfiguration(deps.settings.file.path, content, true), deps)
  const untilMs = deps.clock.monotonicMs() + Math.max(graceMs(next), leastTakeOverMs)
  for (;;) {
    const error = await healthOf(next)
    if (!error) return next
    if (signal.aborted || deps.clock.monotonicMs() >= untilMs) {
      closeServices(next)
      throw new Error(`health check for new transformers failed, polling error timed out waiting for the condition: ${error.message}`, { cause: error })
    }
    await deps.clock.sleep(lookMs, signal).catch(() => undefined)
  }
}
