/** Refuses simulated nodes and pods that need more memory than there is (L4, pure): a server that runs out of it ends. */
import { CommandError } from './exitCodes.ts'

/** The resident memory of a node without pods, and the heap of a pod, as docs/scale.md has them. */
const bytesPerNode = 200_000
const bytesPerPod = 50_000

/** @throws CommandError unmetPrerequisite when `availableBytes` are too few for what is added */
export function checkMemory(added: { readonly nodes: number } | { readonly pods: number }, availableBytes: number): void {
  const [count, what, each] = 'nodes' in added ? [added.nodes, 'simulated nodes', bytesPerNode] : [added.pods, 'pods', bytesPerPod]
  const neededBytes = count * each
  if (neededBytes <= availableBytes) return
  throw new CommandError(
    'unmetPrerequisite',
    `${count} ${what} need about ${mebibytes(neededBytes)}, and this host has ${mebibytes(availableBytes)} of free memory`,
  )
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`
