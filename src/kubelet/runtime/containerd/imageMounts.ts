/**
 * Mounts images on the node (L3) for containerd before 2.1, whose CRI cannot: a read-only view of the image's layers, made and mounted by
 * containerd's own tool, and kept from its garbage collection until it is released.
 * Upstream: containerd/internal/cri/server/container_image_mount.go (2.1), cmd/ctr/commands/images/mount.go (1.6).
 */
import { check, type Exec } from '#host/exec'
import type { ImageMounts } from '../../core/runtimeService.ts'

export interface ContainerdTool {
  /** Runs programs where the node's mounts are. */
  readonly exec: Exec
  /** containerd's socket, as those programs see it. */
  readonly socket: string
}

/** containerd 2.1 mounts images itself. */
export function mountsImagesItself(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return major > 2 || (major === 2 && minor >= 1)
}

export function createImageMounts({ exec, socket }: ContainerdTool): ImageMounts {
  const tool = (...args: string[]) => ['--address', socket, '--namespace', 'k8s.io', ...args]
  const release = async (target: string): Promise<void> => {
    for (const kind of ['snapshots', 'leases']) {
      const { code, stderr } = await exec.run('ctr', tool(kind, 'rm', target))
      if (code !== 0 && !/not found/i.test(stderr)) throw new Error(`releasing the image mounted at ${target} failed: ${stderr.trim()}`)
    }
  }
  return {
    mount: async (imageRef, target) => {
      // What a node that crashed left of an earlier mount is in the way of a new one.
      await release(target)
      await check(exec, 'ctr', tool('images', 'mount', imageRef, target))
      // The tool's own lease ends after a day.
      await check(exec, 'ctr', tool('snapshots', 'label', target, 'containerd.io/gc.root=image-volume'))
    },
    release,
  }
}
