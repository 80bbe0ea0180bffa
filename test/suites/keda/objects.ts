/** Deployments, and the ScaledObjects that scale each by one trigger. */
const namespace = 'default'
/** So many replicas a trigger asks for while it is active. */
export const most = 3
export const perReplica = 2
/** The length of a queue for which each of `most` replicas has its share. */
export const long = most * perReplica
/** The same target in the words of several scalers, which ignore the others' words. */
export const targets = { threshold: String(perReplica), targetValue: String(perReplica), value: String(perReplica) }

export interface Trigger {
  readonly type: string
  readonly metricType?: 'Utilization'
  readonly metadata: Readonly<Record<string, string>>
}

/** @param container what the main container has besides its name and image */
export function deployment(
  name: string,
  replicas: number,
  { annotations = {}, ...container }: { annotations?: object } & Record<string, unknown> = {},
): object {
  const labels = { app: name }
  const containers = [{ name: 'main', image: 'example.com/app:1', ...container }]
  const template = { metadata: { labels, annotations }, spec: { containers } }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace }, spec: { replicas, selector: { matchLabels: labels }, template } }
}

/** Scales the Deployment of the same name, which has no replica as soon as the trigger is inactive for a second. */
export function scaledObject(name: string, trigger: Trigger, spec: object = {}): object {
  // Without a window the HorizontalPodAutoscaler does not wait five minutes before it scales down.
  const behavior = { scaleDown: { stabilizationWindowSeconds: 0 } }
  const usual = { pollingInterval: 1, cooldownPeriod: 1, minReplicaCount: 0, maxReplicaCount: 5 }
  const advanced = { horizontalPodAutoscalerConfig: { behavior } }
  const scaled = { scaleTargetRef: { name }, advanced, triggers: [trigger] }
  return { apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', metadata: { name, namespace }, spec: { ...usual, ...scaled, ...spec } }
}
