/** Pods and Deployments of the labs (L4), and how checks speak of them. */
import type { Deployment } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deployments, pods } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { Look } from './look.ts'

const image = 'lab.skiff.dev/app:1'

type PodSpec = Pod['spec']
type More = { readonly spec?: Partial<PodSpec>; readonly labels?: Record<string, string>; readonly annotations?: Record<string, string> }

function podTemplate(name: string, { spec, labels, annotations }: More) {
  return {
    metadata: { labels: { app: name, ...labels }, annotations },
    spec: { containers: [{ name: 'app', image }], terminationGracePeriodSeconds: 1, ...spec },
  }
}

export function aPod(name: string, more: More = {}): NewObject<Pod> {
  const { metadata, spec } = podTemplate(name, more)
  return { metadata: { ...metadata, name }, spec } as NewObject<Pod>
}

export function aDeployment(name: string, replicas: number, more: More = {}): NewObject<Deployment> {
  return {
    metadata: { name, labels: { app: name } },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: podTemplate(name, more) as Deployment['spec']['template'] },
  }
}

export const create = {
  pod: (look: Look, name: string, more?: More) => look.create(pods, aPod(name, more)),
  deployment: (look: Look, name: string, replicas: number, more?: More) => look.create(deployments, aDeployment(name, replicas, more)),
}

export const isRunning = (pod: Frozen<Pod> | undefined) => pod?.status?.phase === 'Running'
export const isReady = (pod: Frozen<Pod> | undefined) => pod?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

/** In one line, for what a check observed. */
export function podInWords(pod: Frozen<Pod> | undefined, name: string): string {
  if (!pod) return `there is no pod ${name}`
  const { nodeName } = pod.spec
  return `pod ${name} is ${pod.status?.phase ?? 'Pending'}${nodeName ? ` on ${nodeName}` : ', on no node'}`
}
