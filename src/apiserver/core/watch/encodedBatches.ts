/**
 * The bytes of several consecutive events (L3). Watches of one selection that keep up all get the same events at the same time: the first of them
 * concatenates the bytes for all.
 */
import { ownConcat } from '#base/ownMemory'

export class EncodedBatches<T> {
  #items: readonly T[] = []
  #form = ''
  #bytes: Uint8Array | undefined

  /** `form` names the encoding; events are compared by identity. */
  bytes(items: readonly T[], form: string, encode: (item: T) => Uint8Array): Uint8Array {
    if (items.length === 1) return encode(items[0] as T)
    if (this.#bytes && this.#form === form && sameItems(items, this.#items)) return this.#bytes
    this.#items = items
    this.#form = form
    this.#bytes = ownConcat(items.map(encode))
    return this.#bytes
  }
}

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
