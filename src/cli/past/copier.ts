/**
 * Creates copies of objects in another cluster (L4), through its API: in several rounds, because some objects wait for what controllers make. Owners are linked at
 * the end, to the UIDs that the copies have.
 */
import type { ObjectRef, Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import type { Draft, Owner } from './forkPlan.ts'
import { type Kind, keyOf, nameOf, type PastObject } from './objects.ts'

export interface Copy {
  readonly kind: Kind
  /** As it is created. */
  readonly draft: Draft
  /** What owners of other copies are named by. */
  readonly uid: string
  readonly owners: readonly Owner[]
}

export interface CopyReport {
  readonly created: number
  /** The number of objects that the cluster had already, and their lines. */
  readonly thereCount: number
  readonly there: readonly string[]
  /** One line each: an object that the cluster refused. */
  readonly failed: readonly string[]
}

/** The first lines of any number, and how many more there are. */
export class FirstLines {
  readonly #first: string[] = []
  #count = 0

  add(line: string): void {
    if (this.#count++ < mostLines) this.#first.push(line)
  }

  get count(): number {
    return this.#count
  }

  get lines(): readonly string[] {
    return this.#count > mostLines ? [...this.#first, `${this.#count - mostLines} more`] : this.#first
  }
}

const rounds = 20
const roundMs = 500
/** Objects that wait for another round: beyond, the next failure is final. */
const mostWaiting = 2_000
const mostLines = 100

export class Copier {
  readonly #to: Transport
  readonly #clock: Clock
  /** Old UID → new UID. */
  readonly #uids = new Map<string, string>()
  readonly #owned: { readonly kind: Kind; readonly ref: ObjectRef; readonly owners: readonly Owner[] }[] = []
  readonly #there = new FirstLines()
  readonly #failed = new FirstLines()
  #waiting: Copy[] = []
  #created = 0

  constructor(to: Transport, clock: Clock) {
    this.#to = to
    this.#clock = clock
  }

  get report(): CopyReport {
    return { created: this.#created, thereCount: this.#there.count, there: this.#there.lines, failed: this.#failed.lines }
  }

  async add(copy: Copy): Promise<void> {
    await this.#create(copy, this.#waiting.length < mostWaiting)
  }

  /** Tries what was refused again, until all is there or no round helps any more. */
  async retry(): Promise<void> {
    for (let round = 1; round <= rounds && this.#waiting.length > 0; round++) {
      await this.#clock.sleep(roundMs)
      const waiting = this.#waiting
      this.#waiting = []
      for (const copy of waiting) await this.#create(copy, round < rounds)
    }
  }

  fail(line: string): void {
    this.#failed.add(line)
  }

  async #create(copy: Copy, mayWait: boolean): Promise<void> {
    const { kind, draft, uid, owners } = copy
    const ref = refOf(draft)
    const resources = createClient(this.#to).of<Unstructured>(kind)
    try {
      const created = await resources.create(draft as unknown as Unstructured)
      this.#created++
      this.#uids.set(uid, created.metadata.uid ?? '')
      if (owners.length > 0) this.#owned.push({ kind, ref, owners })
    } catch (error) {
      if (!isStatus(error)) throw error
      if (isStatus(error, 'AlreadyExists')) {
        this.#there.add(lineOf(kind, draft))
        const there = await resources.get(ref).catch(() => undefined)
        if (there) this.#uids.set(uid, there.metadata.uid ?? '')
      } else if (mayWait && !isStatus(error, 'Invalid')) this.#waiting.push(copy)
      else this.fail(`${lineOf(kind, draft)}: ${messageOf(error)}`)
    }
  }

  async linkOwners(): Promise<void> {
    for (const { kind, ref, owners } of this.#owned) {
      const resources = createClient(this.#to).of<Unstructured>(kind)
      const linked = owners.flatMap((owner) => {
        const uid = this.#uids.get(owner.uid)
        return uid === undefined ? [] : [{ ...owner, uid }]
      })
      if (linked.length === 0) continue
      const there = await resources.get(ref).catch(() => undefined)
      // A controller adopted it, or deleted it because it was one too many.
      if (!there || (there.metadata.ownerReferences?.length ?? 0) > 0) continue
      await resources.patch(ref, 'merge', { metadata: { ownerReferences: linked, resourceVersion: there.metadata.resourceVersion } }).catch((error) => {
        if (!isStatus(error)) throw error
        if (!isStatus(error, 'Conflict') && !isStatus(error, 'NotFound')) this.fail(`${lineOf(kind, there)}: ${messageOf(error)}`)
      })
    }
  }
}

/** As messages name an object: configmaps default/prices. */
export function lineOf(kind: Kind, object: Pick<PastObject, 'metadata'> | Draft): string {
  return `${nameOf(kind)} ${keyOf(object as PastObject)}`
}

function refOf({ metadata: { namespace, name = '' } }: Draft): ObjectRef {
  return namespace === undefined ? { name } : { namespace, name }
}
