/**
 * Long lists while a JSON patch edits them (L1). Each insertion into a plain array moves all items after it, so ten thousand insertions into a
 * list of a million items would block the event loop for seconds. Long lists are edited in pieces, and joined again before they are read.
 */
import { isObject } from '../machinery/objects.ts'

/** Shorter lists are edited as they are. */
const longFrom = 4_096
const pieceLength = 1_024

/** A list in pieces: an edit moves the items of one piece. */
export class PiecewiseList {
  readonly #pieces: unknown[][] = []
  #length: number
  /** How many pieces and items all edits have passed or moved: what a test can hold them to. */
  steps = 0

  constructor(items: readonly unknown[]) {
    this.#length = items.length
    for (let start = 0; start < items.length; start += pieceLength) this.#pieces.push(items.slice(start, start + pieceLength))
  }

  get length(): number {
    return this.#length
  }

  at(index: number): unknown {
    const [piece, offset] = this.#find(index)
    return this.#pieces[piece]?.[offset]
  }

  set(index: number, value: unknown): void {
    const [piece, offset] = this.#find(index)
    const items = this.#pieces[piece]
    if (items) items[offset] = value
  }

  /** `index` may be the length: then the value becomes the last. */
  insert(index: number, value: unknown): void {
    const [piece, offset] = index === this.#length ? this.#end() : this.#find(index)
    const items = this.#pieces[piece]
    this.#length++
    if (!items) {
      this.#pieces.push([value])
      return
    }
    this.steps += items.length - offset
    items.splice(offset, 0, value)
    if (items.length > 2 * pieceLength) {
      this.steps += this.#pieces.length - piece
      this.#pieces.splice(piece + 1, 0, items.splice(pieceLength))
    }
  }

  remove(index: number): void {
    const [piece, offset] = this.#find(index)
    const items = this.#pieces[piece]
    if (!items) return
    this.#length--
    this.steps += items.length - offset
    items.splice(offset, 1)
    if (items.length === 0) this.#pieces.splice(piece, 1)
  }

  toArray(): unknown[] {
    const items: unknown[] = []
    for (const piece of this.#pieces) for (const item of piece) items.push(item)
    return items
  }

  #end(): [number, number] {
    const last = Math.max(this.#pieces.length - 1, 0)
    return [last, this.#pieces[last]?.length ?? 0]
  }

  /** The piece that an existing position is in, and where in it. */
  #find(index: number): [number, number] {
    let offset = index
    let piece = 0
    for (let items = this.#pieces[0]; items && offset >= items.length; items = this.#pieces[++piece]) offset -= items.length
    this.steps += piece
    return [piece, offset]
  }
}

/** The lists of one document by their arrays, which stay where they are in it. */
export class EditedLists {
  readonly #long = new Map<readonly unknown[], PiecewiseList>()

  length(list: readonly unknown[]): number {
    return this.#long.get(list)?.length ?? list.length
  }

  at(list: readonly unknown[], index: number): unknown {
    const long = this.#long.get(list)
    return long ? long.at(index) : list[index]
  }

  set(list: unknown[], index: number, value: unknown): void {
    const long = this.#long.get(list)
    if (long) long.set(index, value)
    else list[index] = value
  }

  insert(list: unknown[], index: number, value: unknown): void {
    const long = this.#edited(list)
    if (long) long.insert(index, value)
    else list.splice(index, 0, value)
  }

  remove(list: unknown[], index: number): void {
    const long = this.#edited(list)
    if (long) long.remove(index)
    else list.splice(index, 1)
  }

  /** Makes the lists in a value whole. Takes as many steps as the value has parts, or none while no list is long. */
  settle(value: unknown): void {
    if (this.#long.size === 0 || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) this.#settleList(value)
    const parts = isObject(value) ? Object.values(value) : (value as unknown[])
    for (const part of parts) this.settle(part)
  }

  #settleList(list: unknown[]): void {
    const long = this.#long.get(list)
    if (!long) return
    this.#long.delete(list)
    const items = long.toArray()
    list.length = 0
    for (const item of items) list.push(item)
  }

  #edited(list: unknown[]): PiecewiseList | undefined {
    let long = this.#long.get(list)
    if (!long && list.length >= longFrom) {
      long = new PiecewiseList(list)
      this.#long.set(list, long)
    }
    return long
  }
}
