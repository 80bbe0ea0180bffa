/**
 * Lets running simulated pods follow their annotations (L3): a container ends while it runs, probes give other results, and usage changes.
 * annotations.ts reads what they say.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { simulatedPrefix } from '#api/helpers/simulatedPods'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletSources } from '../../core/kubeletSources.ts'
import { countCpu, planEnding } from './containers.ts'
import { behaviourOf } from './profile.ts'
import { behaviour, type Container, idsOf, type Sandbox, type State } from './state.ts'

type Annotations = Readonly<Record<string, string>>

/** Takes up the annotations that the pod has now. One that cannot be read leaves the pod as it is: only a start may fail because of it. */
export function takeAnnotations(state: State, { metadata }: Frozen<Pod>): void {
  const { uid = '', annotations = {} } = metadata
  for (const id of idsOf(state, uid, [])) {
    const sandbox = state.sandboxes.get(id)
    if (sandbox && !isSame(sandbox.config.annotations, annotations)) change(state, sandbox, annotations)
  }
}

function isSame(one: Annotations, other: Annotations): boolean {
  return contains(one, other) && contains(other, one)
}

function contains(all: Annotations, some: Annotations): boolean {
  for (const key of Object.keys(some)) if (key.startsWith(simulatedPrefix) && (!Object.hasOwn(all, key) || all[key] !== some[key])) return false
  return true
}

function change(state: State, sandbox: Sandbox, annotations: Annotations): void {
  const config = { ...sandbox.config, annotations }
  const running = [...state.containers.values()].filter((one) => one.sandbox === sandbox && one.status.state === 'CONTAINER_RUNNING')
  try {
    for (const container of running) behaviourOf(state.profile, container.config, config, state.random)
  } catch {
    return
  }
  // The time until now counts with the usage until now.
  for (const container of running) countCpu(state, container)
  sandbox.config = config
  for (const container of running) planEnding(state, container, behaviour(state, container), sinceStart(state, container))
}

const sinceStart = (state: State, { status }: Container) => Math.max(0, state.clock.now() - status.startedAt / 1e6)

/** The kubelet's source of pods, which also hands their annotations to the runtime. */
export function tellingAnnotations(follow: KubeletSources['pods'], runtime: { takeAnnotations(pod: Frozen<Pod>): void }): KubeletSources['pods'] {
  return (nodeName, handler, signal) =>
    follow(
      nodeName,
      {
        replace: (pods) => {
          for (const pod of pods) runtime.takeAnnotations(pod)
          handler.replace(pods)
        },
        changed: (pod) => {
          runtime.takeAnnotations(pod)
          handler.changed(pod)
        },
        deleted: (pod) => handler.deleted(pod),
      },
      signal,
    )
}
