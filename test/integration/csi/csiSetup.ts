/** A cluster with a CSI driver in this process, behind a unix socket, and the controllers that work for it. Time is real, as the socket is. */
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Event, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { csiNodes, events, nodes, persistentVolumeClaims, persistentVolumes, storageClasses } from '#client/builtIn'
import type { Resource } from '#client/client'
import { type CsiControllerOptions, defaultCsiControllerOptions } from '#csi/controllers/context'
import { runCsiControllers } from '#csi/controllers/csiControllers'
import { connectCsi } from '#csi/controllers/driver'
import { openHostPathDriver } from '#csi/hostpath/driver'
import type { CsiController, CsiDriver } from '#csi/server/csiTypes'
import { serveCsi } from '#csi/server/serveCsi'
import { createExec } from '#host/exec'
import { startCluster, type TestCluster } from '#testing/cluster'

export const driverName = 'hostpath.csi.skiff.dev'
export const topologyKey = 'topology.hostpath.csi.skiff.dev/node'
export const namespace = 'default'
export const leaseNamespace = 'kube-system'
const leaseTimes = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 100 }

export type FullDriver = CsiDriver & { readonly controller: Required<CsiController> }

export interface CsiSetupOptions {
  readonly options?: Partial<CsiControllerOptions>
  /** Changes how the driver answers. */
  readonly driver?: (driver: FullDriver) => CsiDriver
  readonly capacityBytes?: number
  /** The controllers act only with Leases. */
  readonly hasLeases?: boolean
  /** The user of the controllers; default: an administrator. */
  readonly user?: string
  /** Before the controllers start. */
  readonly prepare?: (cluster: TestCluster) => Promise<unknown>
}

export class CsiCluster implements AsyncDisposable {
  readonly cluster: TestCluster
  /** The driver itself, without the changes of the test. */
  readonly driver: FullDriver
  /** In the order in which they were opened. */
  readonly #closers: readonly (() => unknown)[]

  private constructor(cluster: TestCluster, driver: FullDriver, closers: readonly (() => unknown)[]) {
    this.cluster = cluster
    this.driver = driver
    this.#closers = closers
  }

  static async start(options: CsiSetupOptions = {}): Promise<CsiCluster> {
    const closers: (() => unknown)[] = []
    try {
      return await CsiCluster.#open(options, closers)
    } catch (error) {
      await closeAll(closers)
      throw error
    }
  }

  static async #open(
    { options = {}, driver: change = (driver) => driver, capacityBytes = 1e12, hasLeases, user, prepare }: CsiSetupOptions,
    closers: (() => unknown)[],
  ) {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'csi-controllers-'))
    closers.push(() => rmSync(directory, { recursive: true }))
    const cluster = await startCluster({ clock: 'real', nodes: 1 })
    closers.push(() => cluster.close())
    const driver = (await openHostPathDriver({ directory, exec: createExec(), nodeId: 'n1', capacityBytes, now: () => Date.now() })) as FullDriver
    const address = path.join(directory, 'csi.sock')
    const server = await serveCsi(change(driver), `unix://${address}`)
    closers.push(() => server.close())
    await register(cluster)
    await prepare?.(cluster)
    const stop = new AbortController()
    const client = user === undefined ? cluster.client : cluster.clientAs({ name: user, groups: ['system:authenticated'] })
    const deps = { client, clock: cluster.clock, random: seededRandom(1), log: cluster.log, metrics: noMetrics }
    const lease = { namespace: leaseNamespace, client, identity: 'test', ...leaseTimes }
    const settings = {
      connection: connectCsi(address),
      options: { ...defaultCsiControllerOptions, retryStartMs: 50, identity: 'test', ...options },
      lease: hasLeases ? lease : undefined,
    }
    const running = runCsiControllers(deps, settings, stop.signal)
    closers.push(async () => {
      stop.abort(new Error('the test has ended'))
      await running
    })
    return new CsiCluster(cluster, driver, closers)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.#closers)
  }

  addClass(name: string, settings: Partial<StorageClass> = {}): Promise<Frozen<StorageClass>> {
    return this.cluster.client.of(storageClasses).create({ metadata: { name }, provisioner: driverName, ...settings })
  }

  addClaim(name: string, storageClassName: string, spec: Partial<PersistentVolumeClaim['spec']> = {}, metadata: object = {}) {
    const base = { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
    return this.cluster.client.of(persistentVolumeClaims).create({ metadata: { namespace, name, ...metadata }, spec: { ...base, ...spec } })
  }

  /** The volume of the claim, once it is bound. */
  async boundVolume(claimName: string): Promise<Frozen<PersistentVolume>> {
    const { client } = this.cluster
    const claim = await this.cluster.until(async () => {
      const one = await client.of(persistentVolumeClaims).get({ namespace, name: claimName })
      return one.status.phase === 'Bound' && one
    }, 30_000)
    return client.of(persistentVolumes).get({ name: claim.spec.volumeName ?? '' })
  }

  async untilGone<T extends KubeObject>(resource: Resource<T>, ref: { readonly name: string; readonly namespace?: string }): Promise<void> {
    await this.cluster.until(async () => {
      try {
        await this.cluster.client.of(resource).get(ref)
        return false
      } catch (error) {
        if (isStatus(error, 'NotFound')) return true
        throw error
      }
    }, 30_000)
  }

  async messagesOf(objectName: string, reason: string): Promise<string[]> {
    const { items } = await this.cluster.client.of(events).list()
    return items.filter((event: Frozen<Event>) => event.involvedObject.name === objectName && event.reason === reason).map(({ message = '' }) => message)
  }

  /** Waits for an event, and returns its message. */
  untilEvent(objectName: string, reason: string): Promise<string> {
    return this.cluster.until(async () => (await this.messagesOf(objectName, reason))[0], 30_000)
  }

  async volumeIds(): Promise<string[]> {
    const { entries } = await this.driver.controller.listVolumes({ maxEntries: 0, startingToken: '' })
    return entries.map(({ volume }) => volume.volumeId)
  }
}

/** A driver with other methods of its controller. */
export function changed(methods: (controller: FullDriver['controller']) => Partial<CsiController>): (driver: FullDriver) => CsiDriver {
  return (driver) => ({ ...driver, controller: { ...driver.controller, ...methods(driver.controller) } })
}

async function closeAll(closers: readonly (() => unknown)[]): Promise<void> {
  for (const close of closers.toReversed()) await close()
}

/** What the kubelet does when it finds the driver. */
async function register({ client }: TestCluster): Promise<void> {
  await client.of(nodes).patch({ name: 'n1' }, 'merge', { metadata: { labels: { [topologyKey]: 'n1' } } })
  const spec = { drivers: [{ name: driverName, nodeID: 'n1', topologyKeys: [topologyKey] }] }
  await client.of(csiNodes).patch({ name: 'n1' }, 'merge', { spec })
}
