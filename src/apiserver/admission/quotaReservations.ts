/**
 * Reservations of quota for admitted writes that are not in the caches yet (L3). The reservation of a write that fails after admission
 * expires.
 */
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { ObjectReader } from '../core/objectReader.ts'

interface Reservation {
  readonly object: Frozen<KubeObject>
  /** The revision of the changed object; 0: the object is new. */
  readonly since: number
  readonly expiresMs: number
}

/** Reservations by the objects' names. */
type Reservations = Map<string, readonly Reservation[]>

const reservationMs = 5_000
/** Bound of concurrent requests for one object: all but one of them fail anyway. */
const maxPerName = 100

export interface QuotaReservations {
  /** @param old the object that it replaces */
  add(resource: GroupResource, namespace: string, name: string, object: Frozen<KubeObject>, old: Frozen<KubeObject> | undefined): void
  /** Objects by name; several if requests for one object run concurrently. */
  of(resource: GroupResource, namespace: string): ReadonlyMap<string, readonly Frozen<KubeObject>[]>
}

export function createReservations(reader: ObjectReader, clock: Clock): QuotaReservations {
  const all = new Map<string, Reservations>()
  const followed = new Set<string>()
  const keyOf = ({ group, resource }: GroupResource, namespace: string) => `${group}/${resource}/${namespace}`
  const keep = (key: string, name: string, stays: (reservation: Reservation) => boolean) => {
    const here = all.get(key)
    const left = here?.get(name)?.filter(stays) ?? []
    if (left.length > 0) here?.set(name, left)
    else here?.delete(name)
    if (here?.size === 0) all.delete(key)
  }
  const follow = (resource: GroupResource) => {
    const key = `${resource.group}/${resource.resource}`
    if (followed.has(key)) return
    followed.add(key)
    reader.onChange(resource, ({ type, object: { metadata } }) => {
      const revision = Number(metadata.resourceVersion)
      // What goes is another one, whose name a new one will have. A later revision is this write, or made it fail: then it is admitted again.
      const stays = ({ since }: Reservation) => (since === 0 ? type === 'DELETED' : type !== 'DELETED' && revision <= since)
      keep(keyOf(resource, metadata.namespace ?? ''), metadata.name ?? '', stays)
    })
  }
  return {
    add(resource, namespace, name, object, old) {
      follow(resource)
      const key = keyOf(resource, namespace)
      const here: Reservations = all.get(key) ?? new Map()
      const since = Number(old?.metadata.resourceVersion ?? 0)
      const before = here.get(name)?.slice(1 - maxPerName) ?? []
      all.set(key, here.set(name, [...before, { object, since, expiresMs: clock.monotonicMs() + reservationMs }]))
    },
    of(resource, namespace) {
      const key = keyOf(resource, namespace)
      const nowMs = clock.monotonicMs()
      for (const name of [...(all.get(key)?.keys() ?? [])]) keep(key, name, ({ expiresMs }) => expiresMs >= nowMs)
      return new Map([...(all.get(key) ?? [])].map(([name, kept]) => [name, kept.map(({ object }) => object)]))
    },
  }
}
