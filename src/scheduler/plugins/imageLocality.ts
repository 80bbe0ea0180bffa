/** Prefers nodes that already have the images of the pod's containers and volumes; the weight falls when few nodes have an image (L3). Upstream: plugins/imagelocality. */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type StateData, stateKey } from '../framework/cycleState.ts'
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'

const megabyte = 1024 * 1024
const minThreshold = 23 * megabyte
const maxContainerThreshold = 1000 * megabyte

/** The pod's images that some node has, and the weight of each: the share of nodes that have it. */
interface Images extends StateData {
  readonly containers: number
  readonly spread: readonly { readonly name: string; readonly share: number }[]
}
const key = stateKey<Images>('ImageLocality')

export const imageLocality = definePlugin('ImageLocality', () => ({
  requeueOn: [],
  batchSign: ({ pod }) => [...new Set(imagesOf(pod))].sort().join(),
  preScore: (state, { pod }, _nodes, snapshot) => {
    const containers = (pod.spec.initContainers?.length ?? 0) + pod.spec.containers.length
    const spread = imagesOf(pod)
      .map((name) => ({ name, share: snapshot.imageNodes(name) / snapshot.nodes.length }))
      .filter(({ share }) => share > 0)
    state.write(key, { containers, spread })
    // On no node: all would get 0.
    return spread.length === 0 ? 'skip' : undefined
  },
  score: (state, _pod, node) => {
    const wanted = state.read(key)
    if (!wanted) return 0
    let sum = 0
    for (const { name, share } of wanted.spread) sum += Math.floor((node.images.get(name) ?? 0) * share)
    const maxThreshold = maxContainerThreshold * wanted.containers
    const clamped = Math.min(Math.max(sum, minThreshold), maxThreshold)
    return Math.floor((maxNodeScore * (clamped - minThreshold)) / (maxThreshold - minThreshold))
  },
}))

function imagesOf({ spec }: Frozen<Pod>): string[] {
  const mounted = (spec.volumes ?? []).flatMap(({ image }) => image?.reference ?? [])
  return [...[...(spec.initContainers ?? []), ...spec.containers].map(({ image }) => image ?? ''), ...mounted].map(withTag)
}

/** `nginx` means `nginx:latest`. */
function withTag(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image
}
