/**
 * Volumes that are images (L3): pulled when a container that mounts them starts, and mounted by the runtime, or by us below the pod's
 * directory for a runtime that cannot. A restarted container may get a newer image: each image is mounted at a separate path.
 * Upstream: kuberuntime_manager.go getImageVolumes, containerd's container_image_mount.go (v1.36).
 */
import { realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import type { Mount, PodSandboxConfig } from '#grpc/criTypes'
import { listIfExists, makeDirectory } from '#host/files'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import { podDirectory } from '../core/podDirectory.ts'
import type { ImageMounts } from '../core/runtimeService.ts'
import { StartError } from '../core/startError.ts'
import type { ImageManager } from '../images/imageManager.ts'
import { isMountPoint, unmountIfMounted } from './podMounts.ts'

const directoryName = 'kubernetes.io~image'

export interface ImageVolumeRequest {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly sandbox: PodSandboxConfig
  readonly signal: AbortSignal
}

/** An image as the runtime mounts it, or a path of the node at which it is mounted. */
export type ImageMount = Pick<Mount, 'hostPath' | 'image' | 'imageSubPath'>

/** By the pod's name for the volume: what to mount for a subpath. */
export type ImageVolumes = ReadonlyMap<string, (subPath: string) => Promise<ImageMount>>

/** Pulls the images that the container mounts. @throws StartError with the reason of the image that is not there. */
export async function pullImageVolumes(context: KubeletContext, images: ImageManager, request: ImageVolumeRequest): Promise<ImageVolumes> {
  const { pod, container, sandbox, signal } = request
  const found = new Map<string, (subPath: string) => Promise<ImageMount>>()
  for (const volume of imagesMountedBy(pod, container)) {
    const { reference = '', pullPolicy } = volume.image ?? {}
    counters(context).requested.inc()
    const asContainer: FrozenContainer = { ...container, image: reference, imagePullPolicy: pullPolicy ?? 'IfNotPresent' }
    const { imageRef } = await images.ensureImage(pod, asContainer, sandbox, signal)
    found.set(volume.name, (subPath) => mountImage(context, pod, volume.name, imageRef, subPath))
  }
  return found
}

/** An image without a reference is left out: its volume is nothing. */
function imagesMountedBy(pod: FrozenPod, container: FrozenContainer): Frozen<Volume>[] {
  const used = new Set((container.volumeMounts ?? []).map(({ name }) => name))
  return (pod.spec.volumes ?? []).filter(({ name, image }) => image?.reference && used.has(name))
}

function counters({ metrics }: KubeletContext) {
  return {
    requested: metrics.counter({ name: 'kubelet_image_volume_requested_total', help: 'How many volumes of images were wanted.' }),
    mounted: metrics.counter({ name: 'kubelet_image_volume_mounted_succeed_total', help: 'How many volumes of images were mounted.' }),
    failed: metrics.counter({ name: 'kubelet_image_volume_mounted_errors_total', help: 'How many volumes of images could not be mounted.' }),
  }
}

async function mountImage(context: KubeletContext, pod: FrozenPod, volumeName: string, imageRef: string, subPath: string): Promise<ImageMount> {
  const { host, runtime, config } = context
  const mounts = await runtime.imageMounts?.()
  if (!host || !mounts) return { hostPath: '', image: { image: imageRef }, imageSubPath: subPath }
  const target = `${podDirectory(config.rootDirectory, pod.metadata.uid ?? '')}/volumes/${directoryName}/${volumeName}/${placeOf(imageRef)}`
  try {
    await makeDirectory(host.path(target), 0o755)
    if (!(await isMountPoint(host, target))) await mounts.mount(imageRef, target)
    const hostPath = await directoryInImage(host, target, subPath)
    counters(context).mounted.inc()
    return { hostPath }
  } catch (error) {
    counters(context).failed.inc()
    // The word that newer runtimes use, for users who search for it.
    const reason = messageOf(error)
    throw new StartError('CreateContainerError', `failed to generate container spec: ImageVolumeMountFailed: ${reason}`)
  }
}

/** A short name for an image's digest. */
const placeOf = (imageRef: string) => imageRef.slice(imageRef.lastIndexOf(':') + 1).slice(0, 16)

/** The directory inside the image. Nothing in an image changes, so that its path may be used after the check. */
async function directoryInImage(host: KubeletHost, target: string, subPath: string): Promise<string> {
  if (subPath === '') return target
  const root = await realpath(host.path(target))
  const fail = (why: string) => new Error(`failed to ensure image subpath "${subPath}" in "${target}": ${why}`)
  const real = await realpath(join(root, subPath)).catch(() => undefined)
  if (real === undefined) throw fail('no such file or directory')
  if (real !== root && !real.startsWith(`${root}/`)) throw fail('path escapes from parent')
  if (!(await stat(real)).isDirectory()) throw fail(`only directory subpath is supported, subpath: "${subPath}", mountpoint: "${target}" `)
  return target + real.slice(root.length)
}

/** Unmounts and releases what mountImage mounted for a pod. */
export async function releaseImageVolumes(host: KubeletHost, mounts: () => Promise<ImageMounts | undefined>, directory: string): Promise<void> {
  const root = `${directory}/volumes/${directoryName}`
  for (const volumeName of await listIfExists(host.path(root))) {
    for (const place of await listIfExists(host.path(`${root}/${volumeName}`))) {
      const target = `${root}/${volumeName}/${place}`
      await unmountIfMounted(host, target)
      await (await mounts())?.release(target)
    }
  }
}
