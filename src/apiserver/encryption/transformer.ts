/**
 * Between an object's bytes and the value that the store keeps (L3): the interface, the choice among several by the prefix that a value carries, and
 * the one that leaves values alone.
 * Upstream: apiserver/pkg/storage/value/transformer.go, encrypt/identity (v1.36).
 */
import { aggregateReasons } from '../core/reasons.ts'
import type { ObserveTransformation } from './metrics.ts'

export interface TransformContext {
  /** Where the value is kept, such as `/registry/secrets/default/one`: a value moved elsewhere cannot be read. */
  readonly key: string
  /** As metrics name it: `secrets`, `deployments.apps`. */
  readonly resource: string
}

export interface TransformedValue {
  readonly data: Uint8Array
  /** Written as a new value would not be: to be written again even where the object stays the same. */
  readonly stale: boolean
}

export interface ValueTransformer {
  /** Answers later only when a key must be fetched first. @throws Error, or rejects, when the value cannot be read */
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
 * Writes with the first transformer; reads with those whose prefix the value has, in order, until one can. What another than the first has read is stale.
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
        // Whether a value is encrypted at all shows only when it is read as plain: that is no failure.
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

/** One error of several, each said once. Upstream: utilerrors.Reduce, NewAggregate. */
export function aggregate(errors: readonly Error[]): Error {
  const [first] = errors
  return errors.length === 1 && first ? first : new Error(aggregateReasons(errors.map(({ message }) => message)), { cause: first })
}

function hasPrefix(data: Uint8Array, prefix: Uint8Array): boolean {
  if (data.length < prefix.length) return false
  for (let at = 0; at < prefix.length; at++) if (data[at] !== prefix[at]) return false
  return true
}
