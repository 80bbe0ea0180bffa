/**
 * Attaches volumes to the nodes whose pods need them, and detaches them when no pod does (L3). It creates and deletes VolumeAttachments; drivers do
 * the work. Attached volumes are listed in the node's status, where the kubelet waits for them.
 * Upstream: pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go (v1.36).
 */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { csiDrivers, nodes, persistentVolumeClaims, persistentVolumes, pods, volumeAttachments } from '#client/builtIn'
import type { Indexers } from '#client/cache/indexer'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, everyPeriod, type Result } from '../framework/reconciler.ts'
import { nodeNameIndex, podClaimIndex, podClaimIndexers, podNodeIndexers } from '../shared/indexes.ts'
import { attachmentName, inTreePluginOf, inTreeVolumes, partsOf, uniqueName, type VolumeView, type Wanted, wantedVolumes } from './attachable.ts'
import { createAttachDetachMetrics } from './attachDetachMetrics.ts'
import { attach, detach, reportAttached } from './attachEffects.ts'
import { createReports } from './attachReports.ts'
import { managedAnnotation, watchForNodes } from './attachTriggers.ts'
import { planNode } from './nodePlan.ts'

export interface AttachDetachOptions {
  readonly attaching?: {
    /** All nodes are reconciled this often, also without a change; 0: never. Default 1 min. */
    readonly syncPeriodMs?: number | undefined
    /** Never detach a volume that may still be mounted, however long the node does not answer. Default false. */
    readonly neverForce?: boolean | undefined
  }
}

export const attachDetach: ControllerDescriptor<AttachDetachOptions> = {
  name: 'persistentvolume-attach-detach-controller',
  aliases: ['attachdetach'],
  serviceAccount: 'attachdetach-controller',
  create: createAttachDetachController,
}

const defaultSyncPeriodMs = 60_000
const volumeIndex = 'persistentVolume'
const attachmentIndexers: Indexers<VolumeAttachment> = {
  [nodeNameIndex]: ({ spec }) => [spec.nodeName],
  [volumeIndex]: ({ spec }) => [spec.source.persistentVolumeName ?? ''],
}

const inTreeIndex = 'inTreeVolume'
const nodeIndexers: Indexers<Node> = { [inTreeIndex]: inTreeVolumes }
/** Stands for a volume that is attached by being in the node's status. */
const reportedOnly: Frozen<VolumeAttachment> = {
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: {} },
  ...{ spec: { attacher: '', nodeName: '', source: {} }, status: { attached: true } },
}

function createAttachDetachController(context: ControllerContext, options: AttachDetachOptions) {
  const { clock } = context
  const { syncPeriodMs = defaultSyncPeriodMs, neverForce = false } = options.attaching ?? {}
  const podInformer = context.informers.of(pods)
  const nodeInformer = context.informers.of(nodes)
  const claims = context.informers.of(persistentVolumeClaims)
  const volumes = context.informers.of(persistentVolumes)
  const drivers = context.informers.of(csiDrivers)
  const attachmentInformer = context.informers.of(volumeAttachments)
  podInformer.addIndexers({ ...podClaimIndexers, ...podNodeIndexers })
  attachmentInformer.addIndexers(attachmentIndexers)
  nodeInformer.addIndexers(nodeIndexers)
  const attachments = readYourWrites(context.client.of(volumeAttachments), attachmentInformer, clock)
  const nodeClient = readYourWrites(context.client.of(nodes), nodeInformer, clock)
  const metrics = createAttachDetachMetrics(context.metrics)
  /** By node and unique name, on the monotonic clock. */
  const unwantedSince = new Map<string, ReadonlyMap<string, number>>()
  const podsOfVolume = ({ spec }: Frozen<PersistentVolume>) =>
    spec.claimRef ? podInformer.store.byIndex(podClaimIndex, `${spec.claimRef.namespace}/${spec.claimRef.name}`) : []
  const reports = createReports(context.events('attachdetach-controller'), podsOfVolume)
  const view: VolumeView = {
    claim: (namespace, name) => claims.lister.get({ namespace, name }),
    volume: (name) => volumes.lister.get({ name }),
    attaches: (name) => drivers.lister.get({ name })?.spec.attachRequired !== false,
  }
  // One at a time: two nodes must not get a volume that only one may have.
  const reconciler = createReconciler(context, { name: attachDetach.name, queueName: 'pvcs', workers: 1, reconcile })
  const lookAtAll = () => {
    for (const key of nodeInformer.store.keys()) reconciler.queue.add(key)
    for (const key of attachmentInformer.store.indexValues(nodeNameIndex)) reconciler.queue.add(key)
  }
  const volumeOf = ({ spec }: Frozen<VolumeAttachment>) => view.volume(spec.source.persistentVolumeName ?? '')
  const attachmentChanged = (old: Frozen<VolumeAttachment>, now: Frozen<VolumeAttachment>) => reports.changed(old, now, volumeOf(now))
  watchForNodes(context, reconciler, { podsOfVolume, volumeOf, attachmentChanged, lookAtAll })
  // Events report changes of wanted volumes; attached volumes are checked periodically.
  const lookAtAttached = async () => {
    for (const key of attachmentInformer.store.indexValues(nodeNameIndex)) reconciler.queue.add(key)
    for (const { metadata, status } of nodeInformer.store.values()) if ((status?.volumesAttached ?? []).length > 0) reconciler.queue.add(metadata.name ?? '')
  }
  if (syncPeriodMs > 0) reconciler.also((signal) => everyPeriod(context, attachDetach.name, syncPeriodMs, lookAtAttached, signal))
  return reconciler

  async function reconcile(nodeName: string, signal: AbortSignal): Promise<Result | undefined> {
    const node = nodeInformer.store.get(nodeName)
    if (node && node.metadata.annotations?.[managedAnnotation] === undefined) return undefined
    const wanted = node ? wantedVolumes(podInformer.store.byIndex(nodeNameIndex, nodeName), view) : new Map<string, Wanted>()
    const there = attachmentsOf(nodeName, node)
    const since = unwanted(nodeName, wanted, there)
    const plan = planNode({
      node,
      wanted,
      attachments: there,
      holders: (name) => holders(name, nodeName, wanted),
      unwantedForMs: (name) => clock.monotonicMs() - (since.get(name) ?? clock.monotonicMs()),
      neverForce,
    })
    // Report first that the volumes are not to be used any more, then detach.
    if (node) await reportAttached(nodeClient, node, plan.report, signal)
    for (const { name, forced } of plan.detach) {
      await detach(attachments, nodeName, name, signal)
      if (forced) metrics.forced(forced)
    }
    for (const name of plan.attach) {
      if (inTreePluginOf(name) !== undefined) reports.reported(wanted.get(name))
      else await attach(attachments, nodeName, name, wanted.get(name), signal)
    }
    for (const name of plan.taken) reports.taken(nodeName, name, wanted.get(name), holders(name, nodeName, wanted))
    const lateMs = reports.late(nodeName, wanted, there, clock.now())
    metrics.observe(nodeName, wanted, there.keys())
    reports.keep(nodeName, wanted, plan.taken)
    const waits = [plan.lookAgainMs, lateMs].filter((ms) => ms !== undefined)
    return waits.length > 0 ? { requeueAfterMs: least(waits) } : undefined
  }

  /** Attachments of this node and volumes in its status, by the volume's unique name. */
  function attachmentsOf(nodeName: string, node: Frozen<Node> | undefined): Map<string, Frozen<VolumeAttachment> | undefined> {
    const byName = new Map(attachmentInformer.store.byIndex(nodeNameIndex, nodeName).map((one) => [one.metadata.name, one]))
    const found = new Map<string, Frozen<VolumeAttachment> | undefined>()
    const note = (driver: string, handle: string) => found.set(uniqueName(driver, handle), byName.get(attachmentName(driver, handle, nodeName)))
    for (const { name } of node?.status?.volumesAttached ?? []) {
      const parts = partsOf(name)
      if (parts) note(parts.driver, parts.handle)
      else if (inTreePluginOf(name) !== undefined) found.set(name, reportedOnly)
    }
    for (const { metadata, spec } of byName.values()) {
      const csi = view.volume(spec.source.persistentVolumeName ?? '')?.spec.csi
      // Others may attach, too, under names of their own.
      if (csi && metadata.name === attachmentName(csi.driver, csi.volumeHandle, nodeName)) note(csi.driver, csi.volumeHandle)
    }
    return found
  }

  function holders(name: string, nodeName: string, wanted: ReadonlyMap<string, Wanted>): string[] {
    if (inTreePluginOf(name) !== undefined) {
      const nodesWithIt = nodeInformer.store.byIndex(inTreeIndex, name).map(({ metadata }) => metadata.name ?? '')
      return nodesWithIt.filter((one) => one !== nodeName)
    }
    const volumeName = wanted.get(name)?.volume.metadata.name ?? ''
    return attachmentInformer.store
      .byIndex(volumeIndex, volumeName)
      .map(({ spec }) => spec.nodeName)
      .filter((one) => one !== nodeName)
  }

  /** Since when no pod on the node needs them. */
  function unwanted(nodeName: string, wanted: ReadonlyMap<string, Wanted>, there: ReadonlyMap<string, unknown>): ReadonlyMap<string, number> {
    const before = unwantedSince.get(nodeName)
    const names = [...there.keys()].filter((name) => !wanted.has(name))
    const now = new Map(names.map((name) => [name, before?.get(name) ?? clock.monotonicMs()]))
    if (now.size > 0) unwantedSince.set(nodeName, now)
    else unwantedSince.delete(nodeName)
    return now
  }
}
