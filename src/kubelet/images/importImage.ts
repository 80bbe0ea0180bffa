/** Loads an image tar into containerd (L3) with containerd's own tool, into the namespace that CRI reads. */
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type Exec } from '#host/exec'

export interface Containerd {
  readonly exec: Exec
  /** Path of its socket, as `exec` sees it. */
  readonly socket: string
}

/** Imports a docker-archive or OCI tar; answers with the names it held. */
export async function importImage(containerd: Containerd, image: Uint8Array): Promise<string[]> {
  const file = join(tmpdir(), `skiff-image-${randomBytes(6).toString('hex')}.tar`)
  await writeFile(file, image, { mode: 0o600 })
  try {
    const output = await check(containerd.exec, 'ctr', ['--address', containerd.socket, '--namespace', 'k8s.io', 'images', 'import', file])
    return [...output.matchAll(/^unpacking (\S+) \(/gm)].map((match) => match[1] ?? '')
  } finally {
    await rm(file, { force: true })
  }
}
