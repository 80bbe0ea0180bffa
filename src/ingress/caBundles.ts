/**
 * ConfigMaps with the certificates of authorities (L3): those of the whole cluster are followed from the time on when a policy names the first one, and only
 * what policies may use is kept of each.
 */
import type { ConfigMap } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { orAborted } from '#base/orAborted'
import { configMaps } from '#client/builtIn'
import type { ReflectorDeps } from '#client/cache/reflector'
import { createSharedInformer, type SharedInformer } from '#client/cache/sharedInformer'
import type { Client } from '#client/client'
import { deferred, onEach } from './following.ts'

export interface CaBundles {
  get(key: string): Frozen<ConfigMap> | undefined
  /** Reads ConfigMaps from now on. */
  want(): void
  /** Resolves when they are read, at once unless they are wanted. */
  synced(signal: AbortSignal): Promise<void>
  /** @param listener gets the keys of ConfigMaps that come, change or go */
  onChange(listener: (key: string) => void): void
  run(signal: AbortSignal): Promise<void>
}

export const caBundleKey = 'ca.crt'

export function createCaBundles(client: Pick<Client, 'of'>, deps: ReflectorDeps): CaBundles {
  const { promise: wanted, resolve: markWanted } = deferred()
  let informer: SharedInformer<ConfigMap> | undefined
  let tell = (_key: string) => {}
  return {
    get: (key) => informer?.store.get(key),
    want() {
      if (informer) return
      informer = createSharedInformer(client.of(configMaps), deps, { transform: lean })
      informer.addHandler(onEach((one) => tell(keyOf(one))))
      markWanted()
    },
    synced: async (signal) => informer?.synced(signal),
    onChange: (listener) => {
      tell = listener
    },
    async run(signal) {
      await orAborted(wanted, signal).catch(() => {})
      if (!signal.aborted) await informer?.run(signal)
    },
  }
}

function lean({ apiVersion, kind, metadata, data }: Frozen<ConfigMap>): Frozen<ConfigMap> {
  const { name, namespace, uid, resourceVersion } = metadata
  const bundle = data?.[caBundleKey]
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, ...(bundle === undefined ? {} : { data: { [caBundleKey]: bundle } }) }
}
