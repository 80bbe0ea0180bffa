/** HPACK's dynamic table (L3): the fields that the peer added, newest first, bounded in bytes. Pure. Upstream: RFC 7541 sections 2.3.2 and 4. */
import type { Field } from './staticTable.ts'

/** Bytes that a field counts in addition to its name and value. */
export const fieldOverhead = 32

export class DynamicTable {
  /** Oldest first. */
  readonly #fields: Field[] = []
  #bytes = 0
  #mostBytes: number

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** From 0, the newest. */
  get(index: number): Field | undefined {
    return this.#fields[this.#fields.length - 1 - index]
  }

  /** A field larger than the table empties it. */
  add(field: Field): void {
    this.#bytes += sizeOf(field)
    this.#fields.push(field)
    this.#evict()
  }

  resize(mostBytes: number): void {
    this.#mostBytes = mostBytes
    this.#evict()
  }

  #evict(): void {
    while (this.#bytes > this.#mostBytes) this.#bytes -= sizeOf(this.#fields.shift()!)
  }
}

function sizeOf({ name, value }: Field): number {
  return name.length + value.length + fieldOverhead
}
