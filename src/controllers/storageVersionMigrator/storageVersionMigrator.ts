/**
 * Writes the objects of a resource in the form that is stored at present (L3), where a StorageVersionMigration asks for it: after the storage version of a
 * custom resource or the key of the encryption at rest has changed. One migration of a resource runs at a time.
 * Upstream: pkg/controller/storageversionmigrator (v1.36), whose three controllers are one here, and whose list of objects is the garbage collector's cache.
 */
import type { KubeObject } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import { clusterScoped, namespaced } from '#client/builtIn'
import type { Resource } from '#client/client'
import { createDiscovery } from '#client/discovery/discovery'
import { createMetadataClient } from '#client/metadataClient'
import { storageVersionMigrations } from '#client/optional'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, StaleCacheError } from '../framework/reconciler.ts'
import { markEnded, markStarted } from './definitionStatus.ts'
import {
  activeMigration,
  endedConditions,
  isFinished,
  isOfSameResource,
  isRunning,
  type Migration,
  settledConditions,
  startedConditions,
} from './migrationStatus.ts'
import { MigrationError, rewriteObjects } from './rewriteObjects.ts'

export const storageVersionMigrator: ControllerDescriptor = {
  name: 'storage-version-migrator-controller',
  aliases: [],
  serviceAccount: 'storage-version-migrator-controller',
  // Each object takes a request.
  clientRate: { qps: 20, burst: 100 },
  requiredFeatureGate: 'StorageVersionMigrator',
  create: createMigrator,
}

/** A new resource may take so long until discovery names it. */
const discoveredMs = 60_000
/** No namespace has this name: its list is empty, and has the resource's version all the same. */
const noNamespace = '@fake:svm_ns!'

function createMigrator(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(storageVersionMigrations)
  const discovery = createDiscovery(client.transport)
  const metadata = createMetadataClient(client.transport)
  const reconciler = createReconciler(context, { name: storageVersionMigrator.name, workers: 5, reconcile })
  /** When one ends, the next of its resource begins. */
  const enqueue = (migration: Migration) => {
    for (const one of informer.store.list()) if (isOfSameResource(one, migration)) reconciler.queue.add(one.metadata.name ?? '')
  }
  reconciler.watch(informer, { onAdd: enqueue, onUpdate: (_, migration) => enqueue(migration), onDelete: enqueue })
  return reconciler

  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const migration = informer.store.get(name)
    if (!migration) return undefined
    if (isFinished(migration)) return settle(migration, signal)
    if (activeMigration(informer.store.list().filter((one) => isOfSameResource(one, migration)))?.metadata.name !== name) return undefined
    if (!isRunning(migration)) {
      await markStarted(context, migration, signal)
      await write(migration, { conditions: startedConditions(migration, clock.now()) }, signal)
      return undefined
    }
    const resource = await find(migration, signal)
    if (!resource) return end(migration, 'resource does not exist in discovery', signal)
    const { resourceVersion: asOf } = migration.status
    if (!asOf) {
      await write(migration, { resourceVersion: await currentVersion(resource, signal) }, signal)
      return undefined
    }
    try {
      await rewriteObjects(client, resource, asOf, storageVersionMigrator.name, signal)
    } catch (error) {
      if (!(error instanceof MigrationError)) throw error
      return end(migration, `migration encountered unhandled error: ${error.message}`, signal)
    }
    return end(migration, undefined, signal)
  }

  /** The definition has the outcome before the migration says that it runs no more: else it would be missing after a crash between the two. */
  async function settle(migration: Migration, signal: AbortSignal): Promise<undefined> {
    const conditions = settledConditions(migration)
    if (conditions.length === migration.status.conditions?.length) return undefined
    await markEnded(context, migration, signal)
    await write(migration, { conditions }, signal)
    return undefined
  }

  async function end(migration: Migration, failure: string | undefined, signal: AbortSignal): Promise<undefined> {
    // It may have got a label while its objects were written.
    const newest = informer.store.get(migration.metadata.name ?? '')
    const current = newest && newest.metadata.uid === migration.metadata.uid ? newest : migration
    await write(current, { conditions: endedConditions(current, failure, clock.now()) }, signal)
    return undefined
  }

  async function write(migration: Migration, status: Partial<Migration['status']>, signal: AbortSignal): Promise<void> {
    await client.of(storageVersionMigrations).updateStatus({ ...migration, status: { ...migration.status, ...status } }, { signal })
  }

  /** The preferred version of the resource. Undefined: it does not exist. @throws StaleCacheError while it may not be there yet */
  async function find({ metadata: { creationTimestamp = '' }, spec }: Migration, signal: AbortSignal): Promise<Resource<KubeObject> | undefined> {
    discovery.invalidate()
    const { resources, failed } = await discovery.resources(signal)
    const { group = '', resource } = spec.resource
    const found = resources.find((one) => one.group === group && one.resource === resource)
    if (found) return (found.namespaced ? namespaced : clusterScoped)<KubeObject>(group, found.version, resource, found.kind)
    const isYoung = clock.now() < (parseTime(creationTimestamp) ?? 0) + discoveredMs
    const isUnknown = [...failed.keys()].some((version) => version.split('/')[0] === group)
    if (isYoung || isUnknown) throw new StaleCacheError('the resource does not exist in discovery yet')
    return undefined
  }

  async function currentVersion(resource: Resource<KubeObject>, signal: AbortSignal): Promise<string> {
    const list = await metadata.of(resource).list({ limit: 1, ...(resource.namespaced ? { namespace: noNamespace } : {}), signal })
    return list.metadata.resourceVersion ?? ''
  }
}
