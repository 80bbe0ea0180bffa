/**
 * The controllers for one CSI driver (L3): those whose calls the driver has. Each holds the Lease of upstream's sidecar for the same work, so that
 * only one of them acts. Upstream: kubernetes-csi's external-provisioner, external-attacher, external-resizer and external-snapshotter.
 */
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { type LeaderElectionOptions, runLeaderElected } from '#client/leaderElection'
import { createControllerContext } from '#controllers/framework/context'
import { createAttacher } from './attacher.ts'
import type { CsiContext, CsiControllerOptions } from './context.ts'
import { type CsiConnection, type CsiDriverFacts, learnDriver } from './driver.ts'
import { createProvisioner } from './provisioner/provisioner.ts'
import { createResizer } from './resizer/resizer.ts'
import { sanitizedName } from './sanitizedName.ts'
import { createSnapshotBinding, createSnapshotTaking } from './snapshotter/snapshotter.ts'

export interface CsiControllersDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
}

export interface CsiControllersSettings {
  /** Closed at the end. */
  readonly connection: CsiConnection
  readonly options: CsiControllerOptions
  /** Undefined: the controllers act without a Lease. */
  readonly lease?: (Omit<LeaderElectionOptions, 'lock'> & { readonly namespace: string; readonly client: Client }) | undefined
}

interface CsiController {
  /** The name of the Lease, before it is sanitized. */
  readonly lease: (driver: string) => string
  readonly isFor: (driver: CsiDriverFacts) => boolean
  readonly create: (context: CsiContext) => Component
}

const takesSnapshots = ({ controller }: CsiDriverFacts) => controller.has('CREATE_DELETE_SNAPSHOT')

const controllers: readonly CsiController[] = [
  { lease: (driver) => driver, isFor: ({ controller }) => controller.has('CREATE_DELETE_VOLUME'), create: createProvisioner },
  { lease: (driver) => `external-attacher-leader-${driver}`, isFor: () => true, create: createAttacher },
  {
    lease: (driver) => `external-resizer-${driver}`,
    isFor: ({ controller, expandsOnNodes }) => controller.has('EXPAND_VOLUME') || expandsOnNodes || controller.has('MODIFY_VOLUME'),
    create: createResizer,
  },
  { lease: (driver) => `external-snapshotter-leader-${driver}`, isFor: takesSnapshots, create: createSnapshotTaking },
  { lease: () => 'snapshot-controller-leader', isFor: takesSnapshots, create: createSnapshotBinding },
]

/** Resolves when the signal has stopped the controllers. @throws Error when a Lease is lost: the process starts over */
export async function runCsiControllers(deps: CsiControllersDeps, { connection, options, lease }: CsiControllersSettings, signal: AbortSignal): Promise<void> {
  using over = abortScope(signal)
  const informers = createSharedInformerFactory(deps.client, deps)
  try {
    const driver = await learnDriver(connection, deps, over.signal)
    deps.log.info('Found the driver', { driver: driver.name, capabilities: [...driver.controller].join() })
    const caching = informers.run(over.signal)
    const act = (controller: CsiController, client: Client, acting: AbortSignal) => {
      const context = createControllerContext({ ...deps, client, informers }, acting)
      return controller.create({ ...context, connection, driver, options }).run(acting)
    }
    const running = controllers
      .filter(({ isFor }) => isFor(driver))
      .map((controller) => {
        if (!lease) return act(controller, deps.client, over.signal)
        const { namespace, client, ...settings } = lease
        const lock = { namespace, name: sanitizedName(controller.lease(driver.name)) }
        const lead = (leading: AbortSignal, { fence }: { fence(client: Client): Client }) => act(controller, fence(deps.client), leading)
        return runLeaderElected({ ...deps, client }, { releaseOnCancel: true, ...settings, lock }, lead, over.signal)
      })
    await Promise.all(running)
    await caching
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    over.abort(new Error('the controllers have ended'))
    connection.close()
  }
}
