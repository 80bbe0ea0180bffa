/**
 * The DRA drivers of a simulated node (L3): every driver whose devices a claim has is there, and is at once done with preparing them. Nobody can register
 * on a node without a machine; its ResourceSlices are published, and its devices' conditions told, by whoever simulates them.
 */
import type { DraClaim, DraPluginClient } from '#grpc/draPlugin'
import type { DraDrivers } from './draDrivers.ts'

export function simulatedDraDrivers(): Pick<DraDrivers, 'get' | 'health'> {
  const all = <T>(claims: readonly DraClaim[], result: T) => Object.fromEntries(claims.map(({ uid }) => [uid, { ...result, error: '' }]))
  const driver: DraPluginClient = {
    prepare: async (claims) => all(claims, { devices: [] }),
    unprepare: async (claims) => all(claims, {}),
    async *health() {},
    close: () => {},
  }
  return { get: () => driver, health: () => 'Unknown' }
}
