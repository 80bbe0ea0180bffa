/**
 * The DRA drivers that run on this node (L3, edge): registered through plugins_registry, each with a connection and, if it reports it, the health of its
 * devices. The ResourceSlices of a driver that stays away are deleted. Upstream: kubelet/cm/dra/plugin/dra_plugin_manager.go, healthinfo.go (v1.36).
 */

import { isStatus } from '#api/machinery/status'
import type { Timer } from '#base/clock'
import { aborted } from '#base/orAborted'
import { resourceSlices } from '#client/builtIn'
import { connectDraPlugin, type DraPluginClient, type DraVersion } from '#grpc/draPlugin'
import { GrpcError } from '#grpc/grpcError'
import type { KubeletBase } from '../../core/context.ts'
import type { PluginHandler, PluginInfo } from '../../core/pluginHandler.ts'
import { gateEnabled } from '../../core/resourceConfig.ts'

export type DeviceHealth = 'Healthy' | 'Unhealthy' | 'Unknown'

export interface DraDrivers {
  readonly handler: PluginHandler
  /** @throws Error that names the driver when none is registered */
  get(driver: string): DraPluginClient
  health(driver: string, pool: string, device: string): DeviceHealth
  /** Removes the ResourceSlices of drivers that ran before a restart and did not register again. Until aborted. */
  run(signal: AbortSignal): Promise<void>
}

const wipingDelayMs = 30_000
const retryMs = 5_000
/** Health that was not confirmed for this long is unknown, unless the driver sets another duration. */
const healthTimeoutMs = 30_000
const supported: readonly (readonly [service: string, version: DraVersion])[] = [
  ['v1.DRAPlugin', 'v1'],
  ['v1beta1.DRAPlugin', 'v1beta1'],
]
const healthService = 'v1alpha1.DRAResourceHealth'

interface Driver {
  readonly endpoint: string
  readonly client: DraPluginClient
  readonly stop: AbortController
}

interface Health {
  readonly health: DeviceHealth
  readonly validUntilMs: number
}

type Context = Pick<KubeletBase, 'client' | 'clock' | 'log' | 'config'>

/** @param onHealth called with the driver whose devices' health has changed */
export function createDraDrivers(context: Context, onHealth: (driver: string) => void): DraDrivers {
  const { clock, log, config } = context
  const drivers = new Map<string, Driver[]>()
  const healths = new Map<string, Map<string, Health>>()
  const wipes = new Map<string, Timer>()
  const stopped = new AbortController()

  /** @param driver undefined: all drivers that are not registered */
  const wipe = async (driver: string): Promise<void> => {
    wipes.delete(driver)
    if (stopped.signal.aborted || drivers.has(driver)) return
    const fieldSelector = `spec.nodeName=${config.nodeName},spec.driver=${driver}`
    try {
      await context.client.of(resourceSlices).deleteCollection({ fieldSelector })
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      log.v(3).info('Deleting ResourceSlices failed, retrying', { fieldSelector, error: String(error) })
      wipeLater(driver, retryMs)
    }
  }
  const wipeLater = (driver: string, delayMs: number) => {
    wipes.get(driver)?.cancel()
    if (!stopped.signal.aborted)
      wipes.set(
        driver,
        clock.timer(delayMs, () => void wipe(driver)),
      )
  }

  const watchHealth = async (name: string, { client, stop }: Driver): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        for await (const { devices } of client.health(stop.signal)) {
          const known = healths.get(name) ?? new Map<string, Health>()
          healths.set(name, known)
          for (const { device, health, healthCheckTimeoutSeconds } of devices.slice(0, 100_000)) {
            const timeoutMs = healthCheckTimeoutSeconds > 0 ? healthCheckTimeoutSeconds * 1000 : healthTimeoutMs
            const state = ({ HEALTHY: 'Healthy', UNHEALTHY: 'Unhealthy', UNKNOWN: 'Unknown' } as const)[health] ?? 'Unknown'
            known.set(`${device?.poolName}/${device?.deviceName}`, { health: state, validUntilMs: clock.now() + timeoutMs })
          }
          onHealth(name)
        }
      } catch (error) {
        // A driver without this service answers Unimplemented once.
        if (error instanceof GrpcError && error.code === 'UNIMPLEMENTED') return
        log.v(2).info('Watching the health of devices failed, retrying', { driver: name, error: String(error) })
      }
      healths.delete(name)
      onHealth(name)
      await clock.sleep(retryMs, stop.signal).catch(() => {})
    }
  }

  const remove = (name: string, endpoint: string) => {
    const [gone] = (drivers.get(name) ?? []).filter((driver) => driver.endpoint === endpoint)
    const rest = (drivers.get(name) ?? []).filter((driver) => driver !== gone)
    if (rest.length > 0) drivers.set(name, rest)
    else drivers.delete(name)
    gone?.stop.abort()
    gone?.client.close()
    if (rest.length === 0 && gone) wipeLater(name, wipingDelayMs)
  }

  const handler: PluginHandler = {
    type: 'DRAPlugin',
    register: ({ name, endpoint, supportedVersions }: PluginInfo) => {
      const version = supported.find(([service]) => supportedVersions.includes(service))?.[1]
      if (!version) throw new Error(`none of the DRA gRPC interfaces advertised by the DRA plugin are supported: [${supportedVersions.join(' ')}]`)
      if ((drivers.get(name) ?? []).some((driver) => driver.endpoint === endpoint))
        throw new Error(`endpoint ${endpoint} already registered for DRA driver plugin ${name}`)
      const driver = { endpoint, client: connectDraPlugin(endpoint, version), stop: new AbortController() }
      drivers.set(name, [...(drivers.get(name) ?? []), driver])
      wipes.get(name)?.cancel()
      wipes.delete(name)
      const watchesHealth = gateEnabled(config, 'ResourceHealthStatus')
      if (watchesHealth && supportedVersions.includes(healthService)) void watchHealth(name, driver)
    },
    deregister: ({ name, endpoint }) => remove(name, endpoint),
  }

  return {
    handler,
    get: (name) => {
      // The last one of several: it is most likely the newest version.
      const driver = drivers.get(name)?.at(-1)
      if (!driver) throw new Error(`DRA driver ${name} is not registered`)
      return driver.client
    },
    health: (name, pool, device) => {
      const known = healths.get(name)?.get(`${pool}/${device}`)
      return known && known.validUntilMs >= clock.now() ? known.health : 'Unknown'
    },
    run: async (signal) => {
      try {
        await clock.sleep(wipingDelayMs, signal)
        const { items } = await context.client.of(resourceSlices).list({ fieldSelector: `spec.nodeName=${config.nodeName}`, signal })
        for (const driver of new Set(items.map(({ spec }) => spec.driver))) if (!drivers.has(driver)) wipeLater(driver, 0)
        await aborted(signal)
      } catch (error) {
        if (!signal.aborted) log.v(3).info('Looking for ResourceSlices of drivers that are gone failed', { error: String(error) })
      } finally {
        stopped.abort()
        for (const timer of wipes.values()) timer.cancel()
        for (const [name, list] of drivers) for (const { endpoint } of [...list]) remove(name, endpoint)
      }
    },
  }
}
