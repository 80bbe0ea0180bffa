/**
 * The DRA drivers of a simulated node (L3): every driver of a claim is registered and prepares its devices at once. No plugin can register
 * on a node without a machine; the simulation publishes its ResourceSlices and its devices' conditions.
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
