/** One broken set-up: what is created, which object is asked about, and what the answer must say. */
import type { KubeObject } from '#api/machinery/meta'
import { parseYamlDocuments } from '#api/machinery/yaml'

export interface Broken {
  /** Completes "why says what keeps ...". */
  readonly what: string
  /** Manifests; objects without a namespace get one of the set-up's own. */
  readonly given: string
  /** Runs after the manifests. */
  readonly steps?: readonly Step[]
  /** The object: RESOURCE/NAME. */
  readonly ask: string
  readonly cause: RegExp
  readonly evidence: RegExp
  readonly next: RegExp
}

/** `{ns}` in a path or body is the namespace of the set-up. */
export type Step =
  | { readonly status: string; readonly body: object }
  | { readonly patch: string; readonly body: object }
  | { readonly delete: string; readonly foreground?: boolean }
  /** Waits until the pod runs. */
  | { readonly running: string }

export function objectsOf(text: string): KubeObject[] {
  return parseYamlDocuments(text).filter((document) => document !== null) as KubeObject[]
}

export function podYaml(name: string, { annotations = {}, spec = '', container = '', labels = {} }: PodText = {}): string {
  return `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: ${JSON.stringify(labels)}, annotations: ${JSON.stringify(simulated(annotations))}}
spec: {${spec && `${spec}, `}containers: [{name: c, image: 'example.com/web:1'${container && `, ${container}`}}]}
`
}

interface PodText {
  /** Without their prefix. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  /** Further fields of the pod and of its container, in flow style. */
  readonly spec?: string
  readonly container?: string
}

function simulated(annotations: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`skiff.dev/simulated-${key}`, value]))
}

/** A workload with a pod template. `more`: further fields of its spec. */
export function workloadYaml(kind: 'Deployment' | 'StatefulSet' | 'DaemonSet' | 'ReplicaSet', more = '', pod: PodText = {}): string {
  const { annotations = {}, spec = '', container = '' } = pod
  return `
apiVersion: apps/v1
kind: ${kind}
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: ${JSON.stringify(simulated(annotations))}}
    spec: {${spec && `${spec}, `}containers: [{name: c, image: 'example.com/web:1'${container && `, ${container}`}}]}
${more}
`
}

export function jobYaml(more = '', pod: PodText = {}): string {
  const { annotations = {}, spec = '' } = pod
  return `
apiVersion: batch/v1
kind: Job
metadata: {name: task}
spec:
  template:
    metadata: {annotations: ${JSON.stringify(simulated(annotations))}}
    spec: {restartPolicy: Never, ${spec && `${spec}, `}containers: [{name: c, image: 'example.com/task:1'}]}
${more}
`
}

export function claimYaml(name: string, more = '', size = '1Gi'): string {
  return `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ${name}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ${size}}}${more && `, ${more}`}}
`
}
