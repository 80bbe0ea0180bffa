/**
 * Translates between the registry's objects and the store's values (L3): values get the form of etcd where a form is configured, and are encrypted
 * before they are stored and decrypted after they are read. Without a configuration, encrypted values are only recognized.
 * Upstream: the transformer of apiserver/pkg/storage/etcd3/store.go (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import { inOwnMemory } from '#base/ownMemory'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { parseGroupResource } from '../encryption/groupResource.ts'
import { identityTransformer, type TransformedValue, type ValueTransformer } from '../encryption/transformer.ts'
import type { StoredForm } from './storedForm.ts'

export class StoredValues {
  readonly #resource: string
  readonly #transformer: ValueTransformer | undefined
  readonly #form: StoredForm | undefined

  /**
   * @param resource as metrics name it: `deployments.apps`
   * @param transformer absent: values are stored as plain text
   * @param form absent: values are the registry's own JSON
   */
  constructor(resource: string, transformer: ValueTransformer | undefined, form?: StoredForm) {
    this.#resource = resource
    this.#transformer = transformer
    this.#form = form
  }

  /** Labels of metrics. */
  get groupResource(): { readonly group: string; readonly resource: string } {
    return parseGroupResource(this.#resource)
  }

  /** Whether values differ from the registry's own JSON: they are encrypted, or have another form. */
  get transformed(): boolean {
    return this.#transformer !== undefined || this.#form !== undefined
  }

  /**
   * @param key of the store
   * @param plain the object's own JSON
   * @throws StatusError InternalError when nothing can be encrypted
   */
  write(key: string, plain: Uint8Array, object: KubeObject): Uint8Array {
    if (!this.transformed) return plain
    try {
      const data = this.#form ? this.#form.encode(object, plain) : plain
      return inOwnMemory(this.#transformer ? this.#transformer.toStorage(data, { key, resource: this.#resource }) : data)
    } catch (error) {
      throw internalError(error)
    }
  }

  /** Decrypts and decodes a value; returns a promise only if a key must be fetched. */
  read(key: string, value: Uint8Array): Uint8Array | UnreadableValue | Promise<Uint8Array | UnreadableValue> {
    const data = this.decrypt(key, value)
    return data instanceof Promise ? data.then((decrypted) => this.decode(decrypted)) : this.decode(data)
  }

  /** The first half of `read`; returns a promise only if a key must be fetched. */
  decrypt(key: string, value: Uint8Array): Uint8Array | UnreadableValue | Promise<Uint8Array | UnreadableValue> {
    if (!this.#transformer && !mayBeEncrypted(value)) return value
    try {
      const result = this.#fromStorage(key, value)
      if (!(result instanceof Promise)) return inOwnMemory(result.data)
      return result.then(
        ({ data }) => inOwnMemory(data),
        (error: Error) => new UnreadableValue(error),
      )
    } catch (error) {
      return new UnreadableValue(error as Error)
    }
  }

  /** The second half of `read`: converts a value of another version or in YAML. A large one takes tens of milliseconds. */
  decode(data: Uint8Array | UnreadableValue): Uint8Array | UnreadableValue {
    if (!this.#form || data instanceof UnreadableValue) return data
    try {
      return this.#form.decode(data)
    } catch (error) {
      return new UnreadableValue(error as Error, true)
    }
  }

  /** Whether a new value would be encrypted with another key, or have another form. @throws StatusError InternalError */
  async isStale(key: string, value: Uint8Array): Promise<boolean> {
    try {
      const { data, stale } = await this.#fromStorage(key, value)
      return stale || this.#form?.isCurrent(data) === false
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
