/** Why the containers of a pod on a node do not run, or are not ready (L2). */
import type { Container, ContainerStateTerminated, ContainerStatus, Event, Pod } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, kubectl } from './answer.ts'
import { eventText, type View } from './view.ts'

interface Asked {
  readonly pod: Frozen<Pod>
  readonly status: Frozen<ContainerStatus>
  readonly spec: Frozen<Container> | undefined
  /** Warnings about the pod, the newest first. */
  readonly warnings: readonly Frozen<Event>[]
}

/** The causes of containers that are not ready: init containers first, then what concerns all containers, then each one. */
export async function containerCauses(pod: Frozen<Pod>, view: View): Promise<readonly Cause[]> {
  const events = await view.eventsOf(pod)
  const warnings = events.filter(({ type }) => type === 'Warning')
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {}
  const specs = new Map([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((container) => [container.name, container]))
  const ask = (status: Frozen<ContainerStatus>): Asked => ({ pod, status, spec: specs.get(status.name), warnings })
  const init = initContainerStatuses.find((status) => !isDone(status, specs.get(status.name)))
  if (init) {
    const found = causeOf(ask(init)) ?? initCause(pod, init)
    return [found.isOfPod ? found : { ...found, text: `init ${found.text}` }]
  }
  const causes = containerStatuses.filter(({ ready }) => !ready).flatMap((status) => causeOf(ask(status)) ?? [])
  const ofPod = causes.filter(({ isOfPod }) => isOfPod)
  if (ofPod.length > 0) return ofPod.slice(0, 1)
  if (causes.length > 0) return causes
  const preparation = preparationCause({ pod, warnings })
  const isRunning = containerStatuses.some(({ state }) => state?.running)
  if (preparation && !isRunning) return [preparation]
  return isRunning ? gateCauses(pod) : [startCause(pod, events)]
}

/** `isOfPod`: it is about all containers. */
type ContainerCause = Cause & { readonly isOfPod?: boolean }

function isDone({ state, started, ready }: Frozen<ContainerStatus>, spec: Frozen<Container> | undefined): boolean {
  return spec?.restartPolicy === 'Always' ? started === true && ready : state?.terminated?.exitCode === 0
}

function initCause({ metadata: { namespace, name = '' } }: Frozen<Pod>, { name: container, state }: Frozen<ContainerStatus>): ContainerCause {
  const since = state?.running?.startedAt
  return {
    text: `container ${container} has not ended${since === undefined ? '' : `; it runs since ${since}`}, and the others start after it`,
    evidence: `status.initContainerStatuses[${container}].state`,
    next: kubectl(namespace, 'logs', name, '-c', container),
  }
}

function causeOf(asked: Asked): ContainerCause | undefined {
  const { state, started } = asked.status
  if (state?.waiting) return waitingCause(asked, state.waiting.reason ?? '', state.waiting.message ?? '')
  if (state?.running) return probeCause(asked, started === false ? 'Startup' : 'Readiness')
  return state?.terminated ? exitCause(asked, state.terminated) : undefined
}

const imageReasons = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])
const volumeReasons = ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume']

function waitingCause(asked: Asked, reason: string, message: string): ContainerCause | undefined {
  const { status, pod } = asked
  const { namespace, name = '' } = pod.metadata
  const evidence = `container ${status.name} is waiting (${reason})`
  if (imageReasons.has(reason)) return imageCause(asked, reason, message)
  if (reason === 'CrashLoopBackOff') return crashCause(asked)
  if (reason !== 'ContainerCreating' && reason !== 'PodInitializing')
    return {
      text: `container ${status.name} cannot be started: ${message || reason}`,
      evidence,
      next: objectIn(message, namespace) ?? kubectl(namespace, 'describe', 'pod', name),
    }
  return preparationCause(asked)
}

/** What keeps all containers from being created. */
function preparationCause({ pod, warnings }: Pick<Asked, 'pod' | 'warnings'>): ContainerCause | undefined {
  const { namespace, name = '' } = pod.metadata
  const volume = warnings.find(({ reason = '' }) => volumeReasons.includes(reason))
  if (volume) {
    const message = volume.message ?? ''
    return {
      text: `a volume cannot be mounted: ${shortMount(message)}`,
      evidence: eventText(volume),
      next: objectIn(message, namespace) ?? kubectl(namespace, 'describe', 'pod', name),
      isOfPod: true,
    }
  }
  const sandbox = warnings.find(({ reason }) => reason === 'FailedCreatePodSandBox' || reason === 'NetworkNotReady')
  return (
    sandbox && {
      text: `its sandbox cannot be created: ${sandbox.message ?? ''}`,
      evidence: `event ${sandbox.reason}`,
      next: kubectl(undefined, 'describe', 'node', pod.spec.nodeName ?? ''),
      isOfPod: true,
    }
  )
}

const shortMount = (message: string) => message.replace(/^MountVolume\.SetUp failed for volume "([^"]*)" : /, 'volume $1: ')

/** The command that looks for an object whose absence a message reports. */
function objectIn(message: string, namespace: string | undefined): string | undefined {
  const [, kind, name] = /\b(configmap|secret) "([^"]+)" not found/.exec(message) ?? []
  if (kind && name) return kubectl(namespace, 'get', kind, name)
  const [, , owner, object] = /couldn't find key (\S+) in (ConfigMap|Secret) \S+?\/(\S+)/.exec(message) ?? []
  if (owner && object) return kubectl(namespace, 'describe', owner.toLowerCase(), object)
  const [, referenced] = /references non-existent (?:config|secret) key: (\S+)/.exec(message) ?? []
  return referenced && kubectl(namespace, 'get', 'configmaps,secrets')
}

function imageCause({ status, spec, pod, warnings }: Asked, reason: string, message: string): ContainerCause {
  const { namespace, name = '' } = pod.metadata
  const image = spec?.image ?? status.image
  const failure = warnings.find((event) => event.reason === 'Failed' && event.message?.includes(`"${image}"`) && !/^Error: \w+$/.test(event.message))
  const why = (failure?.message ?? message).replace(/^Failed to pull image "[^"]*": /, '').replace(/^Back-off pulling image "[^"]*": \w+: /, '')
  return {
    text: `container ${status.name}: image ${image} cannot be pulled: ${why || reason}`,
    evidence: `container ${status.name} is waiting (${reason})${failure ? `, event Failed` : ''}`,
    next: kubectl(namespace, 'describe', 'pod', name),
  }
}

function crashCause(asked: Asked): ContainerCause {
  const { status, warnings } = asked
  const last = status.lastState?.terminated
  const liveness = warnings.find(({ reason, message = '' }) => reason === 'Unhealthy' && /^(Liveness|Startup) probe/.test(message))
  const about = last ? exitCause(asked, last) : undefined
  const why = liveness ? `${liveness.message ?? ''}, so the kubelet kills it` : (about?.text ?? 'it ends soon after each start')
  return {
    text: liveness ? `container ${status.name} is restarted: ${why}` : `${why}; restarted ${status.restartCount} times`,
    evidence: `container ${status.name} is waiting (CrashLoopBackOff)${liveness ? `, ${eventText(liveness)}` : ''}`,
    ...(about?.next === undefined ? {} : { next: `${about.next}${about.next.includes(' logs ') ? ' --previous' : ''}` }),
  }
}

function exitCause(
  { status, spec, pod }: Pick<Asked, 'status' | 'spec' | 'pod'>,
  { exitCode, reason = '', message }: Frozen<ContainerStateTerminated>,
): ContainerCause {
  const { namespace, name = '' } = pod.metadata
  const limit = spec?.resources?.limits?.memory
  const logs = kubectl(namespace, 'logs', name, '-c', status.name)
  if (reason === 'OOMKilled')
    return {
      text: `container ${status.name} needs more memory than ${limit === undefined ? 'the node has' : `its limit of ${limit}`}, and is killed (OOMKilled)`,
      evidence: `exit code ${exitCode}, reason OOMKilled`,
      next: kubectl(namespace, 'top', 'pod', name, '--containers'),
    }
  if (reason === 'StartError' || reason === 'ContainerCannotRun')
    return {
      text: `container ${status.name} cannot be started: ${message ?? reason}`,
      evidence: `reason ${reason}`,
      next: kubectl(namespace, 'describe', 'pod', name),
    }
  return {
    text: `container ${status.name} ended with exit code ${exitCode}${message ? `: ${message}` : ''}`,
    evidence: `container ${status.name} terminated (${reason})`,
    next: logs,
  }
}

function probeCause({ status, pod, warnings }: Asked, probe: 'Startup' | 'Readiness'): ContainerCause | undefined {
  const { namespace, name = '' } = pod.metadata
  const failure = warnings.find(({ reason, message = '' }) => reason === 'Unhealthy' && message.startsWith(`${probe} probe`))
  return (
    failure && {
      text: `container ${status.name} runs, but its ${probe.toLowerCase()} probe fails: ${(failure.message ?? '').replace(/^\w+ probe failed: /, '')}`,
      evidence: eventText(failure),
      next: kubectl(namespace, 'logs', name, '-c', status.name),
    }
  )
}

/** Nothing has failed so far. */
function startCause(pod: Frozen<Pod>, events: readonly Frozen<Event>[]): Cause {
  const { namespace, name = '' } = pod.metadata
  const newest = events.find(({ reason = '' }) => reason === 'Pulling' || reason === 'Pulled')
  return {
    text: newest?.reason === 'Pulling' ? `its node pulls an image: ${newest.message}` : `the kubelet of ${pod.spec.nodeName} starts it: no failure is reported`,
    evidence: newest ? eventText(newest) : `status.phase ${pod.status?.phase ?? 'absent'}`,
    next: kubectl(namespace, 'get', 'pod', name, '--watch'),
  }
}

function gateCauses(pod: Frozen<Pod>): readonly Cause[] {
  const { namespace, name = '' } = pod.metadata
  for (const { conditionType } of pod.spec.readinessGates ?? []) {
    const condition = podCondition(pod, conditionType)
    if (condition?.status === 'True') continue
    return [
      {
        text: `its readiness gate ${conditionType} is not met: a controller outside the kubelet sets this condition`,
        evidence: condition ? conditionText(condition) : `no condition ${conditionType}`,
        next: kubectl(namespace, 'get', 'pod', name, '-o', 'yaml'),
      },
    ]
  }
  return []
}

/** Containers that have ended with an error. */
export function endedCauses(pod: Frozen<Pod>): readonly Cause[] {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {}
  const specs = new Map([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((container) => [container.name, container]))
  return [...initContainerStatuses, ...containerStatuses].flatMap((status) => {
    const { terminated } = status.state ?? {}
    return terminated && terminated.exitCode !== 0 ? [exitCause({ pod, status, spec: specs.get(status.name) }, terminated)] : []
  })
}
