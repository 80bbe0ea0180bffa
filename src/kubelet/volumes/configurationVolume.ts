/**
 * What the volumes made of API objects have in common (L3): their files are replaced at once, and the places at which other volumes are
 * mounted inside are made, because the volume is read-only for the container. Upstream: pkg/volume/util/nested_volumes.go (v1.36).
 */
import { join, posix } from 'node:path'
import { makeDirectory } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import { type Payload, writeAtomically } from './atomicWriter.ts'
import { fsGroupOf, type VolumeContext, type VolumeRequest } from './volumePlugin.ts'

/** Paths inside the volume at which containers mount other volumes. */
export function nestedMountPoints(pod: FrozenPod, volumeName: string): string[] {
  const found = new Set<string>()
  for (const { volumeMounts = [] } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    for (const own of volumeMounts.filter(({ name }) => name === volumeName)) {
      const root = posix.join('/', own.mountPath, '/')
      for (const { name, mountPath } of volumeMounts) {
        const path = posix.join('/', mountPath)
        if (name !== volumeName && path.startsWith(root)) found.add(path.slice(root.length))
      }
    }
  }
  return [...found]
}

export async function writeConfiguration({ context, host }: VolumeContext, { pod, spec, directory }: VolumeRequest, files: Payload): Promise<void> {
  const path = host.path(directory)
  await writeAtomically(path, files, { fsGroup: fsGroupOf(pod), nowMs: context.clock.now(), turn: () => context.clock.turn() })
  for (const point of nestedMountPoints(pod, spec.name)) await makeDirectory(join(path, point), 0o755)
}
