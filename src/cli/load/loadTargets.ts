/** The objects of a load (L4, pure): its namespaces, Deployments and autoscalers, all with one label. */
import type { Deployment } from '#api/gen/types/apps.v1'
import type { HorizontalPodAutoscaler } from '#api/gen/types/autoscaling.v2'
import type { Namespace } from '#api/gen/types/core.v1'
import type { Random } from '#base/random'
import type { NewObject } from '#client/client'
import type { DeploymentGroup, LoadPlan, Range } from './loadPlan.ts'

export const loadLabel = 'skiff.dev/load'

export interface Target {
  readonly namespace: string
  readonly name: string
  readonly group: DeploymentGroup
  readonly replicas: number
}

export function namespacesOf({ name, namespaces }: LoadPlan): NewObject<Namespace>[] {
  return Array.from({ length: namespaces }, (_, at) => ({ metadata: { name: `${name}-${at + 1}`, labels: { [loadLabel]: name } }, spec: {} }))
}

/** The Deployments, in turn over the namespaces. */
export function targetsOf({ name, namespaces, deployments }: LoadPlan, random: Random): Target[] {
  const targets: Target[] = []
  for (const group of deployments) {
    for (let number = 1; number <= group.count; number++) {
      const namespace = `${name}-${(targets.length % namespaces) + 1}`
      targets.push({ namespace, name: `${group.name}-${number}`, group, replicas: drawn(group.replicas, random) })
    }
  }
  return targets
}

export const drawn = ({ least, most }: Range, random: Random) => least + random.int(most - least + 1)

/** @param load its name, which becomes the label of everything */
export function deploymentOf(load: string, { namespace, name, group, replicas }: Target): NewObject<Deployment> {
  const { metadata = {}, spec } = group.template
  const labels = { [loadLabel]: load, app: name }
  return {
    metadata: { namespace, name, labels },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { ...metadata, labels: { ...metadata.labels, ...labels } }, spec },
    },
  }
}

/** Undefined: the Deployment has none. */
export function autoscalerOf({ namespace, name, group: { autoscaler } }: Target): NewObject<HorizontalPodAutoscaler> | undefined {
  if (!autoscaler) return undefined
  const { min, max, cpuPercent } = autoscaler
  return {
    metadata: { namespace, name },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
      minReplicas: min,
      maxReplicas: max,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: cpuPercent } } }],
    },
  }
}
