/**
 * Empties a volume for its next use (L3): a pod deletes the content, and the pod's events are recorded on the volume.
 * Upstream: pkg/volume/plugins.go NewPersistentVolumeRecyclerPodTemplate, pkg/volume/util/recyclerclient (v1.36).
 */
import type { PersistentVolume, Pod, Volume } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { quantityAsNumber } from '#api/machinery/quantity'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { events, pods } from '#client/builtIn'
import type { NewObject } from '#client/client'
import { waitFor } from '#client/waitFor'
import type { ControllerContext } from '../framework/controller.ts'
import type { RecyclerOptions, VolumeBindingOptions } from './options.ts'

const namespace = 'default'
const gi = 2 ** 30

/** The pod that empties the volume; undefined: this sort of volume cannot be recycled. */
export function recyclerPod({ metadata, spec }: Frozen<PersistentVolume>, options: VolumeBindingOptions): NewObject<Pod> | undefined {
  const { hostPath, nfs } = spec
  const size = quantityAsNumber(spec.capacity?.storage ?? '0')
  const make = (source: Omit<Volume, 'name'>, { minimumSeconds, secondsPerGi, template }: Required<Omit<RecyclerOptions, 'template'>> & RecyclerOptions) => {
    const { metadata: given, spec: body } = template ? deepCopy<Pod>(template) : defaultTemplate()
    const { generateName: _, ...kept } = given
    const seconds = Math.max(minimumSeconds ?? 0, Math.floor(size / gi) * (secondsPerGi ?? 0))
    const [first, ...rest] = body.volumes ?? []
    const volumes = [{ name: first?.name ?? 'vol', ...source }, ...rest]
    return {
      metadata: { ...kept, namespace: kept.namespace ?? namespace, name: `recycler-for-${metadata.name}` },
      spec: { ...body, volumes, activeDeadlineSeconds: seconds },
    }
  }
  if (hostPath) return make({ hostPath: { path: hostPath.path } }, { minimumSeconds: 60, secondsPerGi: 30, ...options.recycleHostPath })
  if (nfs) return make({ nfs: { server: nfs.server, path: nfs.path } }, { minimumSeconds: 300, secondsPerGi: 30, ...options.recycleNfs })
  return undefined
}

function defaultTemplate(): Pick<Pod, 'metadata' | 'spec'> {
  const args = ['-c', 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1']
  const image = 'registry.k8s.io/build-image/debian-base:bookworm-v1.0.2'
  const container = { name: 'pv-recycler', image, command: ['/bin/sh'], args, volumeMounts: [{ name: 'vol', mountPath: '/scrub' }] }
  return { metadata: { namespace }, spec: { restartPolicy: 'Never', containers: [container] } }
}

type Reporter = (type: 'Normal' | 'Warning', message: string) => void

/** Resolves when the volume is empty. @throws Error with why it is not; the pod is gone either way */
export async function recycle(context: ControllerContext, pod: NewObject<Pod>, report: Reporter, signal: AbortSignal): Promise<void> {
  const client = context.client.of(pods)
  const ref = { namespace: pod.metadata.namespace, name: pod.metadata.name ?? '' }
  using over = abortScope(signal)
  const telling = tellEvents(context, ref, report, over.signal)
  try {
    await client.create(pod, { signal })
  } catch (error) {
    over.abort()
    await telling
    if (!isStatus(error, 'AlreadyExists')) throw new Error(`unexpected error creating recycler pod:  ${messageOf(error)}`, { cause: error })
    // The pod is from an earlier process, or another client created it to keep the volume from being emptied: ignore its status.
    await client.delete(ref, { signal })
    throw new Error('old recycler pod found, will retry later', { cause: error })
  }
  let failure: unknown
  try {
    await waitFor(client, ref, hasEnded, context, signal)
  } catch (error) {
    failure = error
  }
  over.abort()
  await telling
  // Delete the pod before reporting, even during shutdown; otherwise it is left for the next process.
  await client.delete(ref, {}).catch((error: unknown) => {
    failure ??= isStatus(error, 'NotFound') ? undefined : new Error(`failed to delete recycler pod: ${messageOf(error)}`, { cause: error })
  })
  if (failure) throw new Error(`failed to recycle volume: ${messageOf(failure)}`, { cause: failure })
}

function hasEnded(pod: Frozen<Pod> | undefined): boolean {
  if (!pod) throw new Error('recycler pod was deleted')
  if (pod.status?.phase === 'Failed') throw new Error(pod.status.message || 'pod failed, pod.Status.Message unknown')
  return isPodTerminal(pod)
}

/** Best effort, as long as one watch lasts. */
async function tellEvents(
  context: ControllerContext,
  { namespace: where, name }: { namespace: string | undefined; name: string },
  report: Reporter,
  signal: AbortSignal,
) {
  try {
    const watch = context.client.of(events).watch({ namespace: where, fieldSelector: `involvedObject.name=${name}`, signal })
    for await (const batch of watch) {
      for (const { type, object } of batch)
        if (type === 'ADDED') report(object.type === 'Warning' ? 'Warning' : 'Normal', `Recycler pod: ${object.message ?? ''}`)
    }
  } catch (error) {
    if (!signal.aborted) context.log.v(4).info('Could not follow the events of a recycler pod', { pod: name, error: messageOf(error) })
  }
}
