/**
 * Transforms an object's bytes to the stored value and back (L3): the interface, the choice of a transformer by the value's prefix, and the identity
 * transformer.
 * Upstream: apiserver/pkg/storage/value/transformer.go, encrypt/identity (v1.36).
 */
import { aggregateReasons } from '../core/reasons.ts'
import type { ObserveTransformation } from './metrics.ts'

export interface TransformContext {
  /** The storage key, such as `/registry/secrets/default/one`: a value that was moved to another key cannot be read. */
  readonly key: string
  /** The label of metrics: `secrets`, `deployments.apps`. */
  readonly resource: string
}

export interface TransformedValue {
  readonly data: Uint8Array
  /** True if a new value would be encrypted differently: the next update writes it again even if the object is unchanged. */
  readonly stale: boolean
}

export interface ValueTransformer {
  /** Returns a promise only if a key must be fetched first. @throws Error, or rejects, when the value cannot be read */
  fromStorage(data: Uint8Array, context: TransformContext): TransformedValue | Promise<TransformedValue>
  /** @throws Error when nothing can be written at the moment */
  toStorage(data: Uint8Array, context: TransformContext): Uint8Array
}

export interface PrefixTransformer {
  /** Empty: plain values. */
  readonly prefix: string
  readonly transformer: ValueTransformer
}

const encryptedPrefix = Buffer.from('k8s:enc:')

export function isEncrypted(data: Uint8Array): boolean {
  return hasPrefix(data, encryptedPrefix)
}

/** Stores values as plain text. It refuses encrypted ones, which would otherwise be decoded as an object. */
export const identityTransformer: ValueTransformer = {
  fromStorage(data) {
    if (isEncrypted(data)) throw new Error('identity transformer tried to read encrypted data')
    return { data, stale: false }
  },
  toStorage: (data) => data,
}

/**
 * Writes with the first transformer; reads with those whose prefix the value has, in order, until one can. A value that another transformer than the
 * first has read is stale.
 * @param noMatch what is wrong with a value that none knows
 */
export function prefixTransformers(noMatch: string, transformers: readonly PrefixTransformer[], observe: ObserveTransformation): ValueTransformer {
  const known = transformers.map(({ prefix, transformer }) => ({ prefix, bytes: Buffer.from(prefix), transformer }))
  const first = known[0]
  if (!first) throw new Error('no transformers')

  const readFrom = (start: number, data: Uint8Array, context: TransformContext, errors: Error[]): TransformedValue | Promise<TransformedValue> => {
    for (let at = start; at < known.length; at++) {
      const { prefix, bytes, transformer } = known[at] as (typeof known)[number]
      if (!hasPrefix(data, bytes)) continue
      const done = observe(context.resource, 'from_storage', prefix || 'identity')
      const found = ({ data: plain, stale }: TransformedValue): TransformedValue => {
        done()
        return { data: plain, stale: stale || at !== 0 }
      }
      const failed = (error: Error) => {
        // A plain value without an identity transformer is no failed decryption.
        if (prefix === '') return
        done(error)
        errors.push(error)
      }
      try {
        const result = transformer.fromStorage(data.subarray(bytes.length), context)
        if (!(result instanceof Promise)) return found(result)
        return result.then(found, (error: Error) => {
          failed(error)
          return readFrom(at + 1, data, context, errors)
        })
      } catch (error) {
        failed(error as Error)
      }
    }
    if (errors.length > 0) throw aggregate(errors)
    const unknown = new Error(noMatch)
    observe(context.resource, 'from_storage', 'unknown')(unknown)
    throw unknown
  }

  return {
    fromStorage: (data, context) => readFrom(0, data, context, []),
    toStorage(data, context) {
      const done = observe(context.resource, 'to_storage', first.prefix)
      try {
        const value = first.transformer.toStorage(data, context)
        done()
        return first.bytes.length === 0 ? value : Buffer.concat([first.bytes, value])
      } catch (error) {
        done(error as Error)
        throw error
      }
    },
  }
}

/** Joins several errors into one, without duplicates. Upstream: utilerrors.Reduce, NewAggregate. */
export function aggregate(errors: readonly Error[]): Error {
  const [first] = errors
  return errors.length === 1 && first ? first : new Error(aggregateReasons(errors.map(({ message }) => message)), { cause: first })
}

function hasPrefix(data: Uint8Array, prefix: Uint8Array): boolean {
  if (data.length < prefix.length) return false
  for (let at = 0; at < prefix.length; at++) if (data[at] !== prefix[at]) return false
  return true
}
