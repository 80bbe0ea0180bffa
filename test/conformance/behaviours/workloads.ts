/** The workloads that behaviours create (tests only): pods that sleep, under whatever owns them. */
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { type PodInput, podOf } from './context.ts'

/** What every pod of a workload runs unless its behaviour says otherwise. */
export const sleeper: PodInput = { script: 'trap "exit 0" TERM; sleep 600 & wait' }

/** The template of pods with these labels: restarted always. */
export function templateOf(labels: Readonly<Record<string, string>>, pod: PodInput = sleeper): PodTemplateSpec {
  const { spec } = podOf({ ...pod, spec: { restartPolicy: 'Always', ...pod.spec } }, { name: '' })
  return { metadata: { labels: { ...labels } }, spec }
}

export const selectorOf = (labels: Readonly<Record<string, string>>): LabelSelector => ({ matchLabels: { ...labels } })
