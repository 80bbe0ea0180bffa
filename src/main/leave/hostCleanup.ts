/**
 * What a machine that leaves removes of itself (L5): the pods in its container runtime, the kubelet's mounts and folder, and the files of its join. Each removes what is
 * there, so that a leave that was interrupted can be repeated. Upstream: kubeadm's phase cleanup-node of reset.
 */
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { parseYaml } from '#api/machinery/yaml'
import { CommandError } from '#cli/exitCodes'
import { connectCri } from '#grpc/criClient'
import { exists, readTextIfExists } from '#host/files'
import type { Mounter } from '#host/mounts'

const defaultSocket = '/run/containerd/containerd.sock'
const connectMs = 2_000

/** Whether something accepts connections there. */
export function isListening(place: { readonly path: string } | { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(place)
    const end = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.setTimeout(connectMs, () => end(false))
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
  })
}

/** The socket of the container runtime that the kubelet's configuration names. @param configuration the file */
export async function runtimeSocket(configuration: string): Promise<string> {
  const text = await readTextIfExists(configuration)
  const { containerRuntimeEndpoint } = Object(text === undefined ? {} : parseYaml(text)) as { containerRuntimeEndpoint?: unknown }
  return typeof containerRuntimeEndpoint === 'string' && containerRuntimeEndpoint !== '' ? containerRuntimeEndpoint.replace(/^unix:\/\//, '') : defaultSocket
}

/** Ends and removes every pod of the runtime. @returns how many; undefined when there is no runtime @throws GrpcError */
export async function removeSandboxes(socket: string): Promise<number | undefined> {
  if (!(await exists(socket))) return undefined
  const cri = connectCri(socket)
  try {
    const { items } = await cri.call<{ items: readonly { readonly id: string }[] }>('RuntimeService', 'ListPodSandbox', {})
    for (const { id: podSandboxId } of items) {
      await cri.call('RuntimeService', 'StopPodSandbox', { podSandboxId })
      await cri.call('RuntimeService', 'RemovePodSandbox', { podSandboxId })
    }
    return items.length
  } finally {
    cri.close()
  }
}

/** Unmounts what is below the folder, and removes it with its content. @throws CommandError conflict when a mount is in use: then nothing is removed */
export async function removeMounted(folder: string, mounter: Pick<Mounter, 'list' | 'unmount'>): Promise<void> {
  if (!(await exists(folder))) return
  const real = await fs.realpath(folder)
  const below = async () => (await mounter.list()).map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(`${real}/`))
  // The deepest first, and of several at one place the last.
  for (const point of (await below()).reverse().sort((a, b) => b.length - a.length)) await mounter.unmount(point).catch(() => {})
  const left = await below()
  if (left.length > 0) {
    throw new CommandError('conflict', `${left.length} mounts below ${folder} are in use, such as ${left[0]}`, {
      hint: 'end what uses them (fuser -m names it), and run skiff leave again',
    })
  }
  await fs.rm(real, { recursive: true, force: true }).catch(async (error: NodeJS.ErrnoException) => {
    // The folder itself may be a file system of its own: it is left empty.
    if (error.code !== 'EBUSY') throw error
    for (const name of await fs.readdir(real)) await fs.rm(path.join(real, name), { recursive: true, force: true })
  })
  await fs.rm(folder, { force: true, recursive: true }).catch(() => {})
}

/** Removes files, and then those of the folders that are empty. */
export async function removeFiles(files: readonly string[], folders: readonly string[]): Promise<void> {
  for (const file of files) await fs.rm(file, { force: true })
  for (const folder of folders) {
    await fs.rmdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(error.code ?? '')) throw error
    })
  }
}
