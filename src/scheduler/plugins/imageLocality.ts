/** Prefers nodes that already have the pod's images, less so where few nodes have them (L3). Upstream: plugins/imagelocality. */
import { maxNodeScore, type SchedulerPlugin } from '../framework/plugin.ts'

const megabyte = 1024 * 1024
const minThreshold = 23 * megabyte
const maxContainerThreshold = 1000 * megabyte

export const imageLocality: SchedulerPlugin = {
  name: 'ImageLocality',
  score: (_state, { pod }, node, snapshot) => {
    const images = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((container) => withTag(container.image ?? ''))
    let sum = 0
    for (const image of images) {
      const bytes = node.images.get(image)
      if (bytes !== undefined) sum += Math.floor(bytes * (snapshot.imageNodes(image) / snapshot.nodes.length))
    }
    const maxThreshold = maxContainerThreshold * images.length
    const clamped = Math.min(Math.max(sum, minThreshold), maxThreshold)
    return Math.floor((maxNodeScore * (clamped - minThreshold)) / (maxThreshold - minThreshold))
  },
}

/** `nginx` means `nginx:latest`. */
function withTag(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image
}
