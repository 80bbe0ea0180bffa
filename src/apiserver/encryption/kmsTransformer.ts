/**
 * Encrypts values under a key that a key management service encrypted (L3): writing does not call the service, reading calls it once
 * for each key that a value was written under. Upstream: apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go (v1.36).
 */
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { formatTime } from '#base/time'
import { extendedNonceGcmTransformer, gcmTransformer } from './aes.ts'
import { decodeEncryptedObject, type EncryptedObject, type EncryptedSource, encodeEncryptedObject, sourceKey, sourceTypes } from './encryptedObject.ts'
import type { KmsService } from './kmsService.ts'
import { type EncryptionMetrics, hashOf } from './metrics.ts'
import type { TransformContext, TransformedValue, ValueTransformer } from './transformer.ts'

/** The key that values are written under. */
export interface WriteKey extends EncryptedSource {
  readonly transformer: ValueTransformer
  /** The fields after the value, see encodeSource. */
  readonly encoded: Uint8Array
  /** Identifies the key in logs. */
  readonly uid: string
  /** Wall time in milliseconds; nothing is written under it afterwards, values are still read. */
  readonly expiresMs: number
}

export interface KmsTransformerDeps {
  readonly service: KmsService
  readonly clock: Clock
  readonly metrics: EncryptionMetrics
  newUid(): string
  /** @throws Error until the service has answered once */
  currentKey(): WriteKey
}

interface ReadKey {
  readonly transformer: ValueTransformer
  readonly untilMs: number
}

const keepMs = 24 * 60 * 60_000
const mostKeys = 10_000

/** @param provider the service's name in the configuration */
export function kmsTransformer(provider: string, deps: KmsTransformerDeps): ValueTransformer {
  const { service, clock, metrics, currentKey } = deps
  const keys = new LruCache<string, ReadKey>(mostKeys)
  const asked = new Map<string, Promise<ValueTransformer>>()
  let remembered: WriteKey['encoded'] | undefined

  const remember = (id: string, transformer: ValueTransformer) => {
    keys.set(id, { transformer, untilMs: clock.monotonicMs() + keepMs })
    metrics.cachedKeys(provider, keys.size)
  }
  const ask = async (id: string, { encryptedDekSource: ciphertext, keyId, annotations, sourceType }: EncryptedSource): Promise<ValueTransformer> => {
    metrics.cacheMiss()
    const key = await service.decrypt(deps.newUid(), { ciphertext, keyId, annotations }).catch((error: Error) => {
      throw new Error(`failed to decrypt DEK, error: ${error.message}`, { cause: error })
    })
    const transformer = sourceType === sourceTypes.hkdfSha256ExtendedNonceAesGcmSeed ? extendedNonceGcmTransformer(key) : gcmTransformer(checkedKey(key))
    remember(id, transformer)
    return transformer
  }
  /** Many values share a key: concurrent reads share one call. */
  const askOnce = (id: string, source: EncryptedSource): Promise<ValueTransformer> => {
    const underWay = asked.get(id)
    if (underWay) return underWay
    const asking = ask(id, source).finally(() => asked.delete(id))
    asked.set(id, asking)
    return asking
  }
  const decrypt = (transformer: ValueTransformer, object: EncryptedObject, context: TransformContext): TransformedValue => {
    metrics.keyIdUsed('from_storage', provider, object.keyId)
    const { data } = transformer.fromStorage(object.encryptedData, context) as TransformedValue
    const current = currentKey()
    return { data, stale: object.keyId !== current.keyId || object.sourceType !== current.sourceType }
  }

  return {
    fromStorage(data, context) {
      const object = decodeEncryptedObject(data)
      currentKey()
      const id = sourceKey(object)
      const known = keys.get(id)
      if (known && known.untilMs > clock.monotonicMs()) return decrypt(known.transformer, object, context)
      return askOnce(id, object).then((transformer) => decrypt(transformer, object, context))
    },
    toStorage(data, context) {
      const key = currentKey()
      checkUsable(key, clock.now())
      if (remembered !== key.encoded) {
        remember(sourceKey(key), key.transformer)
        remembered = key.encoded
      }
      metrics.keyIdUsed('to_storage', provider, key.keyId)
      return encodeEncryptedObject(key.transformer.toStorage(data, context), key.encoded)
    },
  }
}

function checkUsable({ keyId, expiresMs }: WriteKey, nowMs: number): void {
  if (nowMs <= expiresMs) return
  const hash = JSON.stringify(hashOf(keyId))
  throw new Error(`encryptedDEKSource with keyID hash ${hash} expired at ${formatTime(expiresMs)} (current time is ${formatTime(nowMs)})`)
}

function checkedKey(key: Uint8Array): Uint8Array {
  if (![16, 24, 32].includes(key.length)) throw new Error(`crypto/aes: invalid key size ${key.length}`)
  return key
}
