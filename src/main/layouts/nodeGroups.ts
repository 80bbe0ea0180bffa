/** The groups that an API server computes from what the nodes' kubelets answer (L5): metrics.k8s.io and node.skiff.dev. Each server asks the nodes itself. */
import type { ApiServer } from '#apiserver/apiServer'
import { nodeViewGroup } from '#apiserver/endpoints/nodeViews'
import type { Component } from '#base/component'
import { nodeViews } from '#kubelet/views/index'
import { createResourceMetricsApi } from '#metrics/resourceMetricsApi'
import type { OwnKubelets } from './ownKubelets.ts'
import type { ProcessTools } from './processTools.ts'

/** @param ownKubelets those of this process; absent: none. @returns the component that samples the nodes for metrics.k8s.io */
export function offerNodeGroups(server: ApiServer, { clock, log, metrics }: ProcessTools, ownKubelets?: Pick<OwnKubelets, 'measure'>): Component {
  const { reader, kubelets } = server
  const { group, component } = createResourceMetricsApi({
    objects: reader,
    kubelets,
    measureOwn: ownKubelets?.measure,
    clock,
    log: log.with('metrics'),
    metrics,
  })
  server.addGroup(group)
  server.addGroup(nodeViewGroup(nodeViews, { reader, kubelets, clock }))
  return component
}
