/** Images of real nodes (L5): into each node's containerd with containerd's own tool, and what is there. */
import { bareMap } from '#base/bareMap'

import type { LoadedImage } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { check, type Exec } from '#host/exec'
import { containerdSocket, vnodeProcess } from '../vnode/vnode.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'

/** Imports docker-archive and OCI tars into every real node. */
export async function loadImages(exec: Exec, paths: ClusterPaths, state: ClusterState, files: readonly string[], progress: Progress): Promise<LoadedImage[]> {
  const loaded: LoadedImage[] = []
  for (const { node, ctr } of await realNodes(paths, state)) {
    for (const file of files) {
      const output = await progress.step(`Loading ${file} into ${node}`, () => importFile(exec, ctr, file))
      const names = [...output.matchAll(/^unpacking (\S+) \(/gm)].map((match) => match[1] ?? '')
      if (names.length === 0) throw new CommandError('internal', `${file} holds no named image`, { hint: 'docker save NAME:TAG -o FILE keeps the name' })
      loaded.push({ node, names })
    }
  }
  return loaded
}

/** @throws CommandError with containerd's reason, such as that of a file that is no tar or was cut off */
async function importFile(exec: Exec, ctr: readonly string[], file: string): Promise<string> {
  const args = [...ctr, 'images', 'import', file]
  const result = await exec.run('ctr', args)
  if (result.code === 0) return result.stdout
  const reason = result.stderr
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^ctr: /, '')
  throw new CommandError('internal', `${file} cannot be loaded: ${reason || `ctr ended with ${result.code}`}`, {
    hint: 'it has to be a docker-archive or an OCI tar, as docker save NAME:TAG -o FILE writes it',
  })
}

/** Named images of every real node; names by digest are left out. */
export async function listImages(exec: Exec, paths: ClusterPaths, state: ClusterState): Promise<{ node: string; name: string; bytes: number }[]> {
  const found: { node: string; name: string; bytes: number }[] = []
  for (const { node, ctr } of await realNodes(paths, state)) {
    const lines = (await check(exec, 'ctr', [...ctr, 'images', 'ls'])).trim().split('\n').slice(1)
    for (const line of lines) {
      const [name = ''] = line.split(/\s+/)
      const size = /\s([\d.]+) (B|KiB|MiB|GiB)\s/.exec(line)
      if (!name.includes('@') && !name.startsWith('sha256:')) found.push({ node, name, bytes: size ? Number(size[1]) * (unitBytes[size[2] ?? ''] ?? 1) : 0 })
    }
  }
  return found
}

const unitBytes: Readonly<Record<string, number>> = bareMap({ B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 })

async function realNodes(paths: ClusterPaths, state: ClusterState): Promise<{ node: string; ctr: string[] }[]> {
  if (state.nodes.length === 0) throw new CommandError('unmetPrerequisite', `cluster "${state.name}" has only simulated nodes: they hold no images`)
  return Promise.all(
    state.nodes.map(async ({ name }) => {
      const init = await vnodeProcess(paths.node(name))
      if (!init) throw new CommandError('unmetPrerequisite', `node ${name} does not run`, { hint: `skiff start ${state.name}` })
      return { node: name, ctr: ['--address', containerdSocket(init), '--namespace', 'k8s.io'] }
    }),
  )
}
