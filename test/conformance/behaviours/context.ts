/**
 * What a behaviour works with: a namespace of its own on the cluster, typed calls, and the few things that all of them do: run a pod, wait for
 * what it becomes, read its logs, run a command in it. Every wait ends with the behaviour's time and reports what it saw last.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Container, Event, Pod, PodSpec } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject, ObjectRef } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { events, pods } from '#client/builtIn'
import type { Client, NewObject, Resource, ResourceClient } from '#client/client'
import type { CommandResult, LocalCluster, RunningKubectl } from '../../e2e/support/localCluster.ts'

/** An image with a shell and the usual tools, whose command is the shell; every node has it. */
export const busybox = 'skiff.test/busybox:1'

export interface BehaviourContext {
  readonly client: Client
  readonly cluster: LocalCluster
  readonly namespace: string
  readonly nodes: readonly string[]
  readonly signal: AbortSignal
  /** A unique name, for objects without a namespace. */
  unique(prefix: string): string
  /** Runs when the behaviour is over, however it ended; the last one first. Objects in the namespace are deleted with it. */
  cleanUp(work: () => Promise<unknown>): void
  of<T extends KubeObject>(resource: Resource<T>): ResourceClient<T>
  /** Creates in the behaviour's namespace. */
  create<T extends KubeObject>(resource: Resource<T>, object: NewObject<T>): Promise<Frozen<T>>
  get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<Frozen<T>>
  createPod(spec: PodInput): Promise<Frozen<Pod>>
  /** Creates and waits until it has Succeeded (or Failed, when asked for). */
  runPod(spec: PodInput, phase?: 'Succeeded' | 'Failed'): Promise<Frozen<Pod>>
  /** Creates and waits until it is Ready. */
  readyPod(spec: PodInput): Promise<Frozen<Pod>>
  /** What the pod's containers printed, from creation to its end. Waits for the end. */
  outputOf(spec: PodInput, phase?: 'Succeeded' | 'Failed'): Promise<string>
  logs(pod: string, container?: string): Promise<string>
  exec(pod: string, command: readonly string[], container?: string): Promise<CommandResult>
  /** Standard output of a command that must succeed. */
  execText(pod: string, script: string, container?: string): Promise<string>
  waitForPod(name: string, what: string, holds: (pod: Frozen<Pod>) => boolean): Promise<Frozen<Pod>>
  waitForPhase(name: string, phase: string): Promise<Frozen<Pod>>
  waitUntilGone<T extends KubeObject>(resource: Resource<T>, name: string): Promise<void>
  waitForObject<T extends KubeObject>(resource: Resource<T>, name: string, what: string, holds: (object: Frozen<T>) => boolean): Promise<Frozen<T>>
  /** Asks until the answer is right. */
  eventually<T>(what: string, ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T>
  /** Events about the pod whose reason is this one. */
  waitForEvent(podName: string, reason: string): Promise<Frozen<Event>>
  /** kubectl in this namespace; throws when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  kubectlResult(args: readonly string[]): Promise<CommandResult>
  /** A kubectl that keeps running; ended with the behaviour. */
  follow(args: readonly string[]): RunningKubectl
}

/** A short form of a pod: a script (or a container, or a whole spec) and metadata. */
export interface PodInput {
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Run by `sh -c` in the container `main`. */
  readonly script?: string
  /** Added to the container `main`. */
  readonly container?: Partial<Container>
  /** Instead of `main`. */
  readonly containers?: readonly Container[]
  readonly spec?: Partial<PodSpec>
}

const pollMs = 100

/** The full pod: by default it is never restarted and has a grace period of one second. */
export function podOf(input: PodInput, ref: ObjectRef): NewObject<Pod> {
  const main = {
    name: 'main',
    image: busybox,
    imagePullPolicy: 'IfNotPresent',
    ...(input.script === undefined ? {} : { command: ['sh', '-c', input.script] }),
    ...input.container,
  } as Container
  return {
    metadata: { ...ref, labels: { ...input.labels }, annotations: { ...input.annotations } },
    spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: input.containers ? [...input.containers] : [main], ...input.spec } as PodSpec,
  }
}

export interface ContextInput {
  readonly client: Client
  readonly cluster: LocalCluster
  readonly namespace: string
  readonly nodes: readonly string[]
  readonly signal: AbortSignal
  readonly cleanUps: (() => Promise<unknown>)[]
}

export function createContext(input: ContextInput): BehaviourContext {
  const { client, cluster, namespace, signal, cleanUps } = input
  const inNamespace = (name: string): ObjectRef => ({ namespace, name })
  const refOf = <T extends KubeObject>(resource: Resource<T>, name: string): ObjectRef => (resource.namespaced ? inNamespace(name) : { name })

  const eventually = async <T>(what: string, ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> => {
    for (;;) {
      const answer = await ask()
      if (right(answer)) return answer
      if (signal.aborted) throw new Error(`${what}: did not happen in time; last: ${shortly(answer)}`)
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }
  const waitForObject = <T extends KubeObject>(resource: Resource<T>, name: string, what: string, holds: (object: Frozen<T>) => boolean) =>
    eventually(`${resource.resource}/${name} ${what}`, () => client.of(resource).get(refOf(resource, name)), holds)
  const waitForPod = (name: string, what: string, holds: (pod: Frozen<Pod>) => boolean) => waitForObject(pods, name, what, holds)
  const waitForPhase = (name: string, phase: string) => {
    const ended = (pod: Frozen<Pod>) => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
    return waitForPod(name, `is ${phase}`, (pod) => {
      if (pod.status?.phase !== phase && ended(pod)) throw new Error(`pod ${name} is ${pod.status?.phase}, not ${phase}: ${JSON.stringify(pod.status)}`)
      return pod.status?.phase === phase
    })
  }
  const unique = (prefix: string) => `${prefix}-${randomBytes(4).toString('hex')}`
  const createPod = (pod: PodInput) => client.of(pods).create(podOf(pod, { namespace, name: pod.name ?? unique('pod') }))
  const nameOf = (pod: Frozen<Pod>) => pod.metadata.name ?? ''
  const runPod = async (pod: PodInput, phase: 'Succeeded' | 'Failed' = 'Succeeded') => waitForPhase(nameOf(await createPod(pod)), phase)
  const logs = (pod: string, container?: string) => cluster.must(['logs', '-n', namespace, pod, ...(container ? ['-c', container] : [])])
  const exec = (pod: string, command: readonly string[], container?: string) =>
    cluster.kubectl(['exec', '-n', namespace, pod, ...(container ? ['-c', container] : []), '--', ...command])
  const execText = async (pod: string, script: string, container?: string) => {
    const { code, stdout, stderr } = await exec(pod, ['sh', '-c', script], container)
    assert.equal(code, 0, `${script}: ${stdout}${stderr}`)
    return stdout.trimEnd()
  }
  return {
    ...input,
    unique,
    cleanUp: (work) => cleanUps.push(work),
    of: (resource) => client.of(resource),
    create: (resource, object) => client.of(resource).create(resource.namespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object),
    get: (resource, name) => client.of(resource).get(refOf(resource, name)),
    createPod,
    runPod,
    readyPod: async (pod) => waitForPod(nameOf(await createPod(pod)), 'is Ready', isReady),
    outputOf: async (pod, phase) => logs(nameOf(await runPod(pod, phase))),
    logs,
    exec,
    execText,
    waitForPod,
    waitForPhase,
    waitForObject,
    waitUntilGone: async (resource, name) => {
      await eventually(
        `${resource.resource}/${name} is gone`,
        () => client.of(resource).get(refOf(resource, name)).catch(absent),
        (object) => object === undefined,
      )
    },
    eventually,
    waitForEvent: async (podName, reason) => {
      const seen = await eventually(
        `event ${reason} of ${podName}`,
        async () => (await client.of(events).list({ namespace, fieldSelector: `involvedObject.name=${podName}` })).items,
        (items) => items.some((event) => event.reason === reason),
      )
      return seen.find((event) => event.reason === reason) as Frozen<Event>
    },
    kubectl: (args, text) => (text === undefined ? cluster.must(['-n', namespace, ...args]) : cluster.mustWith(text, ['-n', namespace, ...args])),
    kubectlResult: (args) => cluster.kubectl(['-n', namespace, ...args]),
    follow: (args) => {
      const running = cluster.follow(['-n', namespace, ...args])
      cleanUps.push(async () => running.end())
      return running
    },
  }
}

/** An answer as a failed test shows it; for an object only its status. */
function shortly(answer: unknown): string {
  if (typeof answer === 'string') return answer
  const status = (answer as { status?: unknown } | undefined)?.status
  return JSON.stringify(status ?? answer).slice(0, 2000)
}

function absent(error: unknown): undefined {
  if (error instanceof StatusError && error.reason === 'NotFound') return undefined
  throw error
}

export function isReady(pod: Frozen<Pod>): boolean {
  return (pod.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True')
}
