/**
 * Keeps the key that values are written under (L3): polls the status and key id of the key management service, makes a new key when the id
 * changes, and lets the last one expire while the service is down.
 * Upstream: apiserver/pkg/server/options/encryptionconfig/config.go, kmsv2PluginProbe (v1.36).
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { formatTime } from '#base/time'
import { extendedNonceGcmTransformer, seedSize } from './aes.ts'
import { type EncryptedSource, encodeSource, keyIdFault, sourceTypes, validateSource } from './encryptedObject.ts'
import type { KmsService, KmsStatus } from './kmsService.ts'
import type { WriteKey } from './kmsTransformer.ts'
import { type EncryptionMetrics, hashOf } from './metrics.ts'
import { aggregate } from './transformer.ts'

const wellEveryMs = 60_000
const unwellEveryMs = 10_000
/** How long values may be written after the service was last healthy. */
const writeKeyMs = 3 * 60_000
/** How long a successful health check is cached. */
const wellForMs = 20_000
const unwellForMs = 3_000

export interface KmsProbeDeps {
  readonly service: KmsService
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: EncryptionMetrics
  newUid(): string
}

export class KmsProbe {
  readonly #name: string
  readonly #deps: KmsProbeDeps
  #key: WriteKey | undefined
  #version = ''
  #last: { readonly error: Error | undefined; readonly untilMs: number } | undefined
  #checking: Promise<Error | undefined> | undefined

  constructor(name: string, deps: KmsProbeDeps) {
    this.#name = name
    this.#deps = deps
  }

  /** The key for writing values; it may have expired. @throws Error until the service has answered once */
  currentKey(): WriteKey {
    if (!this.#key) throw new Error('got unexpected nil transformer')
    return this.#key
  }

  /** The error of the service, or undefined if it is healthy; cached for a while. */
  check(): Promise<Error | undefined> {
    if (this.#last && this.#last.untilMs > this.#deps.clock.monotonicMs()) return Promise.resolve(this.#last.error)
    this.#checking ??= this.#look().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** Checks until the signal aborts; more often after a failure. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const error = await this.check()
      if (signal.aborted) return
      if (error) this.#deps.log.error(error, 'kms plugin failed health check probe', { name: this.#name })
      await this.#deps.clock.sleep(error ? unwellEveryMs : wellEveryMs, signal).catch(() => undefined)
    }
  }

  async #look(): Promise<Error | undefined> {
    const error = await this.#problem()
    this.#last = { error, untilMs: this.#deps.clock.monotonicMs() + (error ? unwellForMs : wellForMs) }
    return error
  }

  async #problem(): Promise<Error | undefined> {
    let status: KmsStatus
    try {
      status = await this.#deps.service.status()
    } catch (error) {
      const text = `failed to perform status section of the healthz check for KMS Provider ${this.#name}, error: ${(error as Error).message}`
      return new Error(text, { cause: error })
    }
    const errors = [...this.#statusFaults(status)]
    const fault = keyIdFault(status.keyId)
    if (fault) {
      this.#deps.metrics.invalidKeyIdFromStatus(this.#name, fault.code)
      errors.push(new Error(`got invalid KMSv2 KeyID hash ${JSON.stringify(hashOf(status.keyId))}: ${fault.message}`))
    } else {
      this.#deps.metrics.keyIdFromStatus(this.#name, status.keyId)
      const error = await this.#keepKey(status.keyId)
      if (error) errors.push(error)
    }
    return errors.length === 0 ? undefined : new Error(`kmsv2 Provider ${this.#name} is not healthy, error: ${aggregate(errors).message}`)
  }

  #statusFaults({ healthz, version }: KmsStatus): Error[] {
    const faults = healthz === 'ok' ? [] : [new Error(`got unexpected healthz status: ${healthz}`)]
    if (version !== 'v2' && version !== 'v2beta1') return [...faults, new Error(`expected KMSv2 API version v2, got ${version}`)]
    if (this.#version === '') this.#version = version
    if (this.#version === version) return faults
    const changed = `KMSv2 API version should not change after the initial status response version ${this.#version}, got ${version}`
    return [...faults, new Error(changed)]
  }

  /** Extends the current key while the service's key id is the same; otherwise makes a new one. On failure the old one stays until it expires. */
  async #keepKey(keyId: string): Promise<Error | undefined> {
    const { clock, newUid } = this.#deps
    // Taken before the call, so that the key does not outlive its bound.
    const expiresMs = clock.now() + writeKeyMs
    const before = this.#key
    if (before?.keyId === keyId) {
      this.#key = { ...before, expiresMs }
      return undefined
    }
    const uid = newUid()
    const made = await this.#makeKey(uid, expiresMs).catch((error: Error) => error)
    if (!(made instanceof Error) && made.keyId === keyId) {
      this.#key = made
      return undefined
    }
    const show = (text: string | undefined) => JSON.stringify(hashOf(text ?? ''))
    const parts = [
      `uid=${JSON.stringify(uid)}`,
      'useSeed=true',
      `errState=${before ? '<nil>' : 'got unexpected nil transformer'}`,
      `errGen=${made instanceof Error ? made.message : '<nil>'}`,
      `statusKeyIDHash=${show(keyId)}`,
      `encryptKeyIDHash=${show(made instanceof Error ? '' : made.keyId)}`,
      `stateKeyIDHash=${show(before?.keyId)}`,
      `expirationTimestamp=${before ? formatTime(before.expiresMs) : '0001-01-01T00:00:00Z'}`,
    ]
    return new Error(`failed to rotate DEK ${parts.join(', ')}`)
  }

  async #makeKey(uid: string, expiresMs: number): Promise<WriteKey> {
    const { clock, metrics, service } = this.#deps
    const start = clock.monotonicMs()
    const seed = randomBytes(seedSize)
    metrics.dataKeyGenerated((clock.monotonicMs() - start) / 1000)
    const { ciphertext, keyId, annotations } = await service.encrypt(uid, seed).catch((error: Error) => {
      throw new Error(`failed to encrypt DEK, error: ${error.message}`, { cause: error })
    })
    const source: EncryptedSource = { keyId, encryptedDekSource: ciphertext, annotations, sourceType: sourceTypes.hkdfSha256ExtendedNonceAesGcmSeed }
    validateSource(source)
    return { ...source, transformer: extendedNonceGcmTransformer(seed), encoded: encodeSource(source), uid, expiresMs }
  }
}
