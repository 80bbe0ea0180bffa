/**
 * Snapshots of CSI volumes, alone and in groups (L3): binding.ts and groupBinding.ts, which one process does for all drivers, and taking.ts and groupTaking.ts, which
 * each driver has for itself. Upstream: external-snapshotter, cmd/snapshot-controller and cmd/csi-snapshotter.
 */
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { unlessAborted } from '#base/orAborted'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import type { Resource } from '#client/client'
import { createReconciler, enqueueSelf, type Reconciler, type ReconcilerOptions } from '#controllers/framework/reconciler'
import { type CsiContext, retryLimiter } from '../context.ts'
import { Binding } from './binding.ts'
import { GroupBinding } from './groupBinding.ts'
import { GroupTaking } from './groupTaking.ts'
import { volumeGroupSnapshotClasses, volumeGroupSnapshotContents, volumeGroupSnapshots } from './groupTypes.ts'
import { createMissingDefinitions } from './snapshotDefinitions.ts'
import { annotations, groupAnnotations } from './snapshotNames.ts'
import { type VolumeSnapshotContent, volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from './snapshotTypes.ts'
import { Taking } from './taking.ts'

const defaultWorkers = 10
const retryMs = 5000
const kinds = [volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses] as readonly Resource<KubeObject>[]
const groupKinds = [volumeGroupSnapshots, volumeGroupSnapshotContents, volumeGroupSnapshotClasses] as readonly Resource<KubeObject>[]

/** What the controllers need is created, and served. Returns whether the kinds of groups are, which another program's definitions may lack. */
async function untilServed(context: CsiContext, signal: AbortSignal): Promise<boolean> {
  const { client, clock, log } = context
  for (;;) {
    signal.throwIfAborted()
    try {
      const areDefined = await createMissingDefinitions(client, signal).then(
        () => true,
        (error: unknown) => {
          log.v(2).info('Definitions are not created', { error: messageOf(error) })
          return false
        },
      )
      for (const kind of kinds) await client.of(kind).list({ limit: 1, signal })
      return await areGroupsServed(context, areDefined, signal)
    } catch (error) {
      log.v(2).info('Snapshots are not served', { error: messageOf(error) })
      await clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}

/** @param areDefined the definitions exist, so that the kinds will be served in a moment */
async function areGroupsServed({ client, log }: CsiContext, areDefined: boolean, signal: AbortSignal): Promise<boolean> {
  try {
    for (const kind of groupKinds) await client.of(kind).list({ limit: 1, signal })
    return true
  } catch (error) {
    if (!isStatus(error, 'Forbidden') && (areDefined || !isStatus(error, 'NotFound'))) throw error
    log.warn('Snapshots of groups are off until the next start', { error: messageOf(error) })
    return false
  }
}

/** Starts what watches the objects when they are served. */
function whenServed(context: CsiContext, name: string, create: (hasGroups: boolean) => readonly Component[]): Component {
  return {
    name,
    run: async (signal) => {
      const hasGroups = await unlessAborted(untilServed(context, signal), signal)
      if (hasGroups !== undefined && !signal.aborted) await Promise.all(create(hasGroups).map((component) => component.run(signal)))
    },
  }
}

/** @param name of the controller */
function reconcilerOf(context: CsiContext, name: string, queueName: string, reconcile: ReconcilerOptions['reconcile']): Reconciler {
  return createReconciler(context, { name, queueName, workers: context.options.workers ?? defaultWorkers, rateLimiter: retryLimiter(context), reconcile })
}

/** For all drivers, in one process. */
export function createSnapshotBinding(context: CsiContext): Component {
  const name = 'snapshot-controller'
  return whenServed(context, name, (hasGroups) => {
    const { informers } = context
    const binding = new Binding(context, hasGroups)
    const snapshotSync = reconcilerOf(context, name, `${name}-snapshot`, (key, signal) => binding.reconcileSnapshot(key, signal))
    const contentSync = reconcilerOf(context, name, `${name}-content`, (key, signal) =>
      binding.reconcileContent(key, (snapshot) => snapshotSync.queue.add(snapshot), signal),
    )
    snapshotSync.watch(informers.of(volumeSnapshots), { ...enqueueSelf(snapshotSync.queue), onDelete: () => {} })
    for (const resource of [persistentVolumeClaims, persistentVolumes]) snapshotSync.needs(informers.of(resource as typeof persistentVolumes))
    snapshotSync.needs(informers.of(volumeSnapshotClasses))
    contentSync.watch(informers.of(volumeSnapshotContents), {
      ...enqueueSelf(contentSync.queue),
      onDelete: ({ spec }) => snapshotSync.queue.add(`${spec.volumeSnapshotRef.namespace}/${spec.volumeSnapshotRef.name}`),
    })
    contentSync.needs(informers.of(volumeSnapshots))
    return [snapshotSync, contentSync, ...(hasGroups ? groupBinding(context, name, snapshotSync) : [])]
  })
}

function groupBinding(context: CsiContext, name: string, snapshotSync: Reconciler): readonly Component[] {
  const { informers } = context
  const binding = new GroupBinding(context)
  const groupSync = reconcilerOf(context, name, `${name}-group-snapshot`, (key, signal) => binding.reconcileGroup(key, signal))
  const contentSync = reconcilerOf(context, name, `${name}-group-content`, (key, signal) =>
    binding.reconcileContent(key, (group) => groupSync.queue.add(group), signal),
  )
  groupSync.watch(informers.of(volumeGroupSnapshots), {
    ...enqueueSelf(groupSync.queue),
    // Its snapshots wait for its end.
    onDelete: (group) => {
      for (const key of binding.membersOf(group)) snapshotSync.queue.add(key)
    },
  })
  for (const kind of [volumeGroupSnapshotClasses, volumeSnapshots, volumeSnapshotContents, persistentVolumeClaims, persistentVolumes])
    groupSync.needs(informers.of(kind as Resource<KubeObject>))
  contentSync.watch(informers.of(volumeGroupSnapshotContents), {
    ...enqueueSelf(contentSync.queue),
    onDelete: ({ spec }) => groupSync.queue.add(`${spec.volumeGroupSnapshotRef.namespace}/${spec.volumeGroupSnapshotRef.name}`),
  })
  contentSync.needs(informers.of(volumeGroupSnapshots))
  for (const kind of [volumeGroupSnapshots, volumeGroupSnapshotContents]) snapshotSync.needs(informers.of(kind as Resource<KubeObject>))
  return [groupSync, contentSync]
}

interface Takes {
  reconcile(name: string, signal: AbortSignal): Promise<undefined>
}

interface DriverContent extends KubeObject {
  spec: { driver: string }
  status?: object | undefined
}

/** For the driver of the context. */
export function createSnapshotTaking(context: CsiContext): Component {
  const { driver, informers } = context
  const name = `${driver.name} snapshotter`
  const sync = <T extends DriverContent>(queueName: string, taking: Takes, contents: Resource<T>, ownAnnotation: string) => {
    const reconciler = reconcilerOf(context, name, queueName, (key, signal) => taking.reconcile(key, signal))
    const enqueue = (content: Frozen<T>) => {
      if (content.spec.driver === driver.name) reconciler.queue.add(keyOf(content))
    }
    reconciler.watch(informers.of(contents), { onAdd: enqueue, onUpdate: (old, now) => mayMatter(old, now, ownAnnotation) && enqueue(now) })
    return reconciler
  }
  return whenServed(context, name, (hasGroups) => {
    const single = sync('csi-snapshotter-content', new Taking(context), volumeSnapshotContents, annotations.beingCreated)
    single.needs(informers.of(volumeSnapshotClasses))
    if (!hasGroups || !driver.takesGroupSnapshots) return [single]
    const groups = sync('csi-snapshotter-groupsnapshotcontent', new GroupTaking(context), volumeGroupSnapshotContents, groupAnnotations.beingCreated)
    groups.needs(informers.of(volumeGroupSnapshotClasses))
    return [single, groups]
  })
}

/** The status and one annotation are the snapshotter's own: its writes would end the wait for the next try. In a group the status is not its own. */
function mayMatter(old: Frozen<DriverContent>, now: Frozen<DriverContent>, ownAnnotation: string): boolean {
  const bare = ({ metadata, spec, status = {} }: Frozen<DriverContent>) => {
    const { resourceVersion: _version, managedFields: _managers, annotations: all = {}, ...kept } = metadata
    const { [ownAnnotation]: _own, ...others } = all
    return {
      metadata: { ...kept, annotations: others },
      spec,
      handle: all[annotations.group] === undefined ? undefined : (status as VolumeSnapshotContent['status'])?.snapshotHandle,
    }
  }
  return old.metadata.resourceVersion === now.metadata.resourceVersion || !semanticEqual(bare(old), bare(now))
}
