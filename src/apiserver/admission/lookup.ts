/**
 * Looks up objects for plugins (L3): in the server's cache, and if it has none, in the store, since the cache may lag behind writes of another server of
 * the same store. Upstream: the listers of admission plugins, and the clients they fall back on.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { internalError, isStatus } from '#api/machinery/status'
import { resourcePath } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'

export interface LookupResource {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly namespaced: boolean
}

export interface Lookup {
  /** Reads the cache. */
  cached<T extends KubeObject>(resource: LookupResource, namespace: string, name: string): Frozen<T> | undefined
  /** Reads the store; undefined before the server serves. @throws StatusError InternalError */
  live<T extends KubeObject>(resource: LookupResource, namespace: string, name: string): Promise<Frozen<T> | undefined>
}

export const namespaceResource: LookupResource = { group: '', version: 'v1', resource: 'namespaces', namespaced: false }

/** @param transport the server's in-process transport; undefined until it is assembled */
export function createLookup(reader: ObjectReader, transport: () => Transport | undefined): Lookup {
  return {
    cached: <T extends KubeObject>(resource: LookupResource, namespace: string, name: string) => reader.get<T>(resource, namespace, name),
    async live<T extends KubeObject>(resource: LookupResource, namespace: string, name: string) {
      try {
        return (await transport()?.request({ method: 'GET', path: resourcePath(resource, { namespace, name }) }))?.body as Frozen<T> | undefined
      } catch (error) {
        if (isStatus(error, 'NotFound')) return undefined
        throw internalError(error as Error)
      }
    },
  }
}

/** From the cache, else from the store. */
export function find<T extends KubeObject>(lookup: Lookup, resource: LookupResource, namespace: string, name: string): Promise<Frozen<T> | undefined> {
  const found = lookup.cached<T>(resource, namespace, name)
  return found ? Promise.resolve(found) : lookup.live<T>(resource, namespace, name)
}
