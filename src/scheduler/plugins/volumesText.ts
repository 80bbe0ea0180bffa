/** What the volume plugins look at of a pod, as text (L3). Upstream: kube-scheduler/framework signers.go VolumesSigner (v1.36). */
import type { PodInfo } from '../framework/podInfo.ts'

/** Without config maps and secrets: these keep no pod from a node, and differ from pod to pod. */
export function volumesText({ pod: { spec } }: PodInfo): string {
  const sources = (spec.volumes ?? []).filter(({ configMap, secret }) => !configMap && !secret).map(({ name: _, ...source }) => JSON.stringify(source))
  return sources.sort().join()
}
