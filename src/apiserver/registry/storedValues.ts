/**
 * Translates between the registry's objects and the store's values (L3): values are encrypted before they are stored and decrypted after they are
 * read, if the configuration says so. Without a configuration, encrypted values are only recognized.
 * Upstream: the transformer of apiserver/pkg/storage/etcd3/store.go (v1.36).
 */
import { internalError } from '#api/machinery/status'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { parseGroupResource } from '../encryption/groupResource.ts'
import { identityTransformer, type TransformedValue, type ValueTransformer } from '../encryption/transformer.ts'

export class StoredValues {
  readonly #resource: string
  readonly #transformer: ValueTransformer | undefined

  /**
   * @param resource as metrics name it: `deployments.apps`
   * @param transformer absent: values are stored as plain text
   */
  constructor(resource: string, transformer: ValueTransformer | undefined) {
    this.#resource = resource
    this.#transformer = transformer
  }

  /** Labels of metrics. */
  get groupResource(): { readonly group: string; readonly resource: string } {
    return parseGroupResource(this.#resource)
  }

  /** Whether values must be decrypted before parsing. */
  get transformed(): boolean {
    return this.#transformer !== undefined
  }

  /** @param key of the store. @throws StatusError InternalError when nothing can be encrypted */
  write(key: string, plain: Uint8Array): Uint8Array {
    if (!this.#transformer) return plain
    try {
      return this.#transformer.toStorage(plain, { key, resource: this.#resource })
    } catch (error) {
      throw internalError(error)
    }
  }

  /** Decrypts a value; returns a promise only if a key must be fetched. */
  read(key: string, value: Uint8Array): Uint8Array | UnreadableValue | Promise<Uint8Array | UnreadableValue> {
    if (!this.#transformer && !mayBeEncrypted(value)) return value
    try {
      const result = this.#fromStorage(key, value)
      if (!(result instanceof Promise)) return result.data
      return result.then(
        ({ data }) => data,
        (error: Error) => new UnreadableValue(error),
      )
    } catch (error) {
      return new UnreadableValue(error as Error)
    }
  }

  /** Whether a new value would be written under another key, or encrypted while this one is not. @throws StatusError InternalError */
  async isStale(key: string, value: Uint8Array): Promise<boolean> {
    try {
      return (await this.#fromStorage(key, value)).stale
    } catch (error) {
      throw internalError(error)
    }
  }

  #fromStorage(key: string, value: Uint8Array): TransformedValue | Promise<TransformedValue> {
    return (this.#transformer ?? identityTransformer).fromStorage(value, { key, resource: this.#resource })
  }
}

/** Compares the first byte with that of `k8s:enc:`. JSON differs in it; upstream's protobuf has the same one, and is checked further. */
export function mayBeEncrypted(value: Uint8Array): boolean {
  return value[0] === 0x6b
}
