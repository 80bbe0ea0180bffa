/** Reads environment files out of volumes (L3) that containers write to. Upstream: kubelet/kubelet_pods.go, kubelet/util/env (v1.36). */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { KubeletContext } from '../core/context.ts'
import { openRegularWithin } from '../core/safeOpen.ts'
import type { MountedVolumes } from '../volumes/volumePlugin.ts'
import { ConfigError } from './environment.ts'

const maxEnvironmentFileBytes = 64 * 1024

/** A file of a volume, and of nothing else: links may not lead out of it. */
export async function volumeFile({ host }: Pick<KubeletContext, 'host'>, volumes: MountedVolumes, name: string, path: string): Promise<string> {
  const volume = volumes.get(name)
  if (!host || !volume) throw new ConfigError(`cannot find the volume "${name}" referenced by FileKeyRef`)
  const root = await realpath(host.path(volume.path))
  const refuse = (why: string) => new ConfigError(`the file "${path}" referenced by FileKeyRef ${why}`)
  const real = await realpath(join(root, path))
  if (!real.startsWith(`${root}/`)) throw refuse(`is not in the volume "${name}"`)
  // Containers may exchange what lies there while we look.
  const file = await openRegularWithin(root, real)
  if (!file) throw refuse('is no regular file')
  try {
    const { size } = await file.stat()
    if (size > maxEnvironmentFileBytes) throw refuse(`has ${size} bytes: at most ${maxEnvironmentFileBytes} are read`)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxEnvironmentFileBytes), 0, maxEnvironmentFileBytes, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
